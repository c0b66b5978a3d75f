package store

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Purge removes the journal's messages before a place, as the archive does.
func Purge(s *Store, before Seq) error {
	stream, err := s.js.Stream(context.Background(), journalStream)
	if err != nil {
		return err
	}
	return stream.Purge(context.Background(), jetstream.WithPurgeSequence(uint64(before)))
}

// JetStream is the connection's, for what no interface of ours does.
func JetStream(s *Store) jetstream.JetStream { return s.js }

// Conn is the connection.
func Conn(s *Store) *nats.Conn { return s.conn }

// StopEngine is what the engine does when it cannot write.
func StopEngine(s *Store) error { return s.engine.server.ShutdownJetStream() }

// ExamineBlocks is examineBlocks.
func ExamineBlocks(folder, stream string) error { return examineBlocks(folder, stream) }
