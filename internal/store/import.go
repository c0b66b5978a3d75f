package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An Import is what was copied from another store.
type Import struct {
	From    string // the folder
	Streams []ImportedStream
}

// ImportedStream is how many messages of a stream were copied, and how many a log
// was missing between its first and the last that is known of.
type ImportedStream struct {
	Name            string
	Copied, Missing uint64
}

// ImportFrom copies the store in the folder from, or in the folder of its mode
// below from, into the store of c: the journal in order, with the ids of its
// messages and, unless some are missing, at the same places; newest and older
// values of keys, under other revisions; assets. Times are those of the copy.
//
// It refuses a store of c that has anything, and changes nothing of from. With
// salvage it takes what can be read of a damaged one: of a copy, beside the
// store of c, since the engine cuts off what it cannot read. If it fails midway
// the store of c has a part, and is refused the next time.
func ImportFrom(ctx context.Context, c Config, from string, salvage bool, log *slog.Logger) (_ Import, err error) {
	c = c.withDefaults()
	key, err := loadKey(c.EncryptionKeyFile)
	if err != nil {
		return Import{}, err
	}
	if _, err := os.Stat(filepath.Join(from, markerFile)); err != nil {
		from = filepath.Join(from, soloFolder)
	}
	folder := from
	if salvage {
		if folder, err = copyFolder(from, c.DataDir); err != nil {
			return Import{}, fmt.Errorf("copy %s: %w", from, err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	source, err := open(ctx, Config{Mode: Embedded, DataDir: filepath.Dir(folder)}.withDefaults(), log, opening{asIs: true, salvage: salvage, folder: folder})
	if err != nil {
		return Import{}, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if _, err := source.examineKeys(ctx, key); err != nil {
		return Import{}, fmt.Errorf("import from %s: %w", from, err)
	}
	target, err := open(ctx, c, log, opening{fresh: true})
	if err != nil {
		return Import{}, fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	done, err := target.copyFrom(ctx, source)
	if err != nil {
		return Import{}, fmt.Errorf("import from %s: %w", from, err)
	}
	done.From = from
	return done, nil
}

// copyFolder copies a folder that nobody has open to a new one below beside.
func copyFolder(from, beside string) (string, error) {
	f := folder{path: from}
	if err := f.examine(opening{asIs: true}); err != nil {
		return "", err
	}
	if err := f.acquire(); err != nil {
		return "", err
	}
	defer f.close()
	if err := os.MkdirAll(beside, 0o700); err != nil {
		return "", err
	}
	to, err := os.MkdirTemp(beside, "salvage-")
	if err != nil {
		return "", err
	}
	err = os.CopyFS(to, os.DirFS(from))
	// Without its notes the engine reads the blocks themselves.
	notes, globErr := filepath.Glob(filepath.Join(streamsFolder(to), "*", "msgs", "index.db"))
	for _, path := range notes {
		err = errors.Join(err, os.Remove(path))
	}
	if err = errors.Join(err, globErr); err != nil {
		return "", errors.Join(err, os.RemoveAll(to))
	}
	return to, nil
}

// copyFrom copies every stream into the same one of s, which must be empty.
func (s *Store) copyFrom(ctx context.Context, source *Store) (Import, error) {
	for _, p := range specs() {
		info, err := s.streamInfo(ctx, p.name)
		if err != nil {
			return Import{}, err
		}
		if info.State.Msgs > 0 {
			return Import{}, fmt.Errorf("the store that it would go to%s is not empty: stream %s has %d messages; move it away, or give data_dir another folder", s.where(), p.name, info.State.Msgs)
		}
	}
	var done Import
	for _, p := range specs() {
		stream, err := s.copyStream(ctx, source, p)
		if err != nil {
			return Import{}, fmt.Errorf("stream %s: %w; what has been copied is a part: move it away before the next try", p.name, err)
		}
		done.Streams = append(done.Streams, stream)
	}
	return done, nil
}

func (s *Store) copyStream(ctx context.Context, source *Store, p spec) (ImportedStream, error) {
	stream := ImportedStream{Name: p.name}
	info, err := source.streamInfo(ctx, p.name)
	if errors.Is(err, ErrNotFound) {
		return stream, nil
	}
	if err != nil {
		return stream, err
	}
	first := info.State.FirstSeq
	if p.isLog() {
		// Blocks that are read without their notes have what was purged before.
		first = max(first, source.folder.marker.Streams[p.name].First)
	}
	if err := s.beginAt(ctx, p, first); err != nil {
		return stream, err
	}
	if info.State.Msgs == 0 {
		return stream, nil
	}
	r := reader{store: source, stream: p.name, next: max(first, 1)}
	err = r.run(ctx, func(_ *jetstream.MsgMetadata, msg jetstream.Msg) error {
		stream.Copied++
		return s.copyMessage(ctx, p, msg)
	}, func() error { return errSeen })
	if err == nil {
		err = context.Cause(ctx)
	}
	if !errors.Is(err, errSeen) {
		return stream, err
	}
	if p.isLog() {
		last := max(info.State.LastSeq, source.folder.marker.Streams[p.name].Last)
		stream.Missing = last + 1 - first - stream.Copied
	}
	return stream, nil
}

// beginAt makes an empty log give its first message a place, so that readers who
// remember places find theirs.
func (s *Store) beginAt(ctx context.Context, p spec, first uint64) error {
	if !p.isLog() || first <= 1 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.CallTimeout, errSlow)
	defer cancel()
	stream, err := s.openStream(ctx, p.name)
	if err != nil {
		return err
	}
	return fault(ctx, "begin at message "+fmt.Sprint(first), stream.Purge(ctx, jetstream.WithPurgeSequence(first)))
}

// copyMessage keeps the id of a message. One that was taken twice, which the
// deduplication window has forgotten, is here twice as well.
func (s *Store) copyMessage(ctx context.Context, p spec, msg jetstream.Msg) error {
	header := maps.Clone(msg.Headers())
	for _, k := range []string{jetstream.ExpectedLastSubjSeqHeader, jetstream.ExpectedLastSeqHeader, jetstream.ExpectedLastMsgIDHeader, jetstream.ExpectedStreamHeader} {
		delete(header, k)
	}
	out := &nats.Msg{Subject: msg.Subject(), Header: header, Data: msg.Data()}
	if out.Header == nil {
		out.Header = nats.Header{} // written to by publish
	}
	ack, err := s.publish(ctx, "copy", p.name, out)
	if err == nil && ack.Duplicate {
		delete(out.Header, jetstream.MsgIDHeader)
		_, err = s.publish(ctx, "copy", p.name, out)
	}
	return err
}
