package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// An engine is a NATS server within this process: no port, no signals.
type engine struct {
	server *server.Server
	log    *engineLog
}

// startEngine starts the server on a folder and waits until it has read all that
// is there.
func startEngine(ctx context.Context, path string, log *slog.Logger) (*engine, error) {
	e := &engine{log: &engineLog{log: log}}
	srv, err := server.NewServer(&server.Options{
		ServerName: "deckle",
		DontListen: true,
		NoSigs:     true,
		JetStream:  true,
		StoreDir:   path,

		// With the default, two minutes, a power cut loses what was acknowledged.
		SyncAlways: true,

		JetStreamMaxMemory: 64 << 20, // of consumers; no stream is kept in memory
		JetStreamMaxStore:  totalBytes() + 1<<30,
		MaxPayload:         1 << 20,

		DisableJetStreamBanner: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make engine: %w", err)
	}
	e.server = srv
	srv.SetLoggerV2(e.log, false, false, false)

	started := make(chan struct{})
	go func() {
		defer close(started)
		srv.Start() // returns when it has started or cannot, as it does not listen
	}()
	select {
	case <-started:
	case <-ctx.Done():
		e.close()
		return nil, fmt.Errorf("start engine: %w", context.Cause(ctx))
	}
	if !srv.Running() || !srv.JetStreamEnabled() {
		e.close()
		return nil, fmt.Errorf("start engine: %s", e.log.lastWords())
	}
	return e, nil
}

// connect opens a connection within the process.
func (e *engine) connect(options ...nats.Option) (*nats.Conn, error) {
	conn, err := nats.Connect("", append(options, nats.InProcessServer(e.server))...)
	if err != nil {
		return nil, fmt.Errorf("connect to engine: %w", err)
	}
	return conn, nil
}

// running reports whether the engine still stores: it stops by itself, for good,
// when it cannot write.
func (e *engine) running() bool { return e.server.JetStreamEnabled() }

// close stops the server and waits until its files are closed.
func (e *engine) close() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
}

// streamFolders are the streams that a folder has, by what they are called on
// disk.
func streamFolders(path string) ([]string, error) {
	entries, err := os.ReadDir(streamsFolder(path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read streams: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func streamsFolder(path string) string {
	return filepath.Join(path, server.JetStreamStoreDir, "$G", "streams")
}

// engineLog hands the server's lines on. What a server would say at each start
// is for debugging.
type engineLog struct {
	log *slog.Logger

	mu   sync.Mutex
	last string // of what went wrong
}

func (l *engineLog) Noticef(format string, v ...any) {
	l.log.Debug("engine: " + fmt.Sprintf(format, v...))
}

func (l *engineLog) Debugf(format string, v ...any) {
	l.log.Debug("engine: " + fmt.Sprintf(format, v...))
}
func (l *engineLog) Tracef(string, ...any) {}

func (l *engineLog) Warnf(format string, v ...any) {
	l.log.Warn("engine: " + l.remember(format, v...))
}

func (l *engineLog) Errorf(format string, v ...any) {
	l.log.Error("engine: " + l.remember(format, v...))
}

// Fatalf does not end the process: the store refuses to open.
func (l *engineLog) Fatalf(format string, v ...any) {
	l.log.Error("engine: " + l.remember(format, v...))
}

func (l *engineLog) remember(format string, v ...any) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = fmt.Sprintf(format, v...)
	return l.last
}

func (l *engineLog) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it did not say why"
	}
	return l.last
}
