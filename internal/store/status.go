package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Status is what a store says of itself.
type Status struct {
	Mode   Mode
	Folder string // of this mode; "" if the engine is elsewhere
	Server string // its address; "" if the engine is in this process

	// Offset is how far the store's clock is ahead of ours, as near as half a round
	// trip; 0 if the engine is in this process.
	Offset time.Duration

	// Free is how many bytes the folder's disk has left, -1 if there is none.
	Free int64

	// UnsealedKeys is how many key rings are not sealed though there is an encryption
	// key, as of when the store was opened.
	UnsealedKeys int

	Streams []StreamStatus
}

// StreamStatus is what a stream holds and what it may hold.
type StreamStatus struct {
	Name        string
	Messages    uint64
	First, Last Seq // First is Last+1 when it is empty
	Bytes       uint64
	MaxBytes    int64
	MaxMessage  int32 // bytes
	Replicas    int
}

// Status asks the engine. A stream that is missing is left out.
func (s *Store) Status(ctx context.Context) (Status, error) {
	st := Status{Mode: s.config.Mode, Free: -1, UnsealedKeys: s.plainKeys}
	if s.folder != nil {
		st.Folder = s.folder.path
		free, err := freeSpace(s.folder.path)
		if err != nil {
			return Status{}, fmt.Errorf("status of store: %w", err)
		}
		st.Free = free
	} else {
		st.Server = s.conn.ConnectedUrlRedacted()
	}
	ctx, done, err := s.calls.begin(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("status of store: %w", err)
	}
	defer done()
	for _, p := range specs() {
		asked := time.Now()
		info, err := s.streamInfo(ctx, p.name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return Status{}, fmt.Errorf("status of store: %w", err)
		}
		if s.folder == nil {
			st.Offset = info.TimeStamp.Sub(asked.Add(time.Since(asked) / 2))
		}
		st.Streams = append(st.Streams, statusOf(info))
	}
	return st, nil
}

// Now asks who stamps the journal what time it is there: the engine itself, or of
// several its leader. It writes nothing, and so a full store answers as well.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	ctx, done, err := s.calls.begin(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	defer done()
	info, err := s.streamInfo(ctx, journalStream)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	if info.TimeStamp.IsZero() {
		return time.Time{}, errors.New("ask for the time: the engine is too old to say it")
	}
	return info.TimeStamp, nil
}

func statusOf(info *jetstream.StreamInfo) StreamStatus {
	return StreamStatus{
		Name:       info.Config.Name,
		Messages:   info.State.Msgs,
		First:      max(Seq(info.State.FirstSeq), 1),
		Last:       Seq(info.State.LastSeq),
		Bytes:      info.State.Bytes,
		MaxBytes:   info.Config.MaxBytes,
		MaxMessage: info.Config.MaxMsgSize,
		Replicas:   info.Config.Replicas,
	}
}

// Inspect says what a store that nobody has open holds. It makes no store and
// changes no setting; one that is in use is ErrInUse.
func Inspect(ctx context.Context, c Config, log *slog.Logger) (_ Status, err error) {
	sealed := c.EncryptionKeyFile != ""
	c.EncryptionKeyFile = "" // nothing is opened
	s, err := open(ctx, c.withDefaults(), log, opening{asIs: true})
	if err != nil {
		return Status{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	err = s.eachKey(ctx, func(e Entry) error {
		if sealed && !isSealed(e.Value) {
			s.plainKeys++
		}
		return nil
	})
	if err != nil {
		return Status{}, err
	}
	return s.Status(ctx)
}
