package store

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A streamLog is a Log on a stream of the engine.
type streamLog struct {
	store           *Store
	stream, subject string
}

func (l *streamLog) Append(ctx context.Context, id string, data []byte) (Seq, error) {
	operation := "append to " + l.stream
	if err := CheckID(id); err != nil {
		return 0, fmt.Errorf("%s: %w", operation, err)
	}
	ack, err := l.store.publish(ctx, operation, l.stream, &nats.Msg{Subject: l.subject, Data: data}, jetstream.WithMsgID(id))
	if err != nil {
		return 0, err
	}
	return Seq(ack.Sequence), nil
}

// CheckID says what is wrong with the id of a message: it is of 1 to 128 visible
// ASCII characters.
func CheckID(id string) error {
	if len(id) == 0 || len(id) > 128 {
		return fmt.Errorf("message id of %d characters: it has 1 to 128", len(id))
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("message id %q: it is of visible ASCII characters", id)
		}
	}
	return nil
}

// publish writes a message, and returns when it is durable.
func (s *Store) publish(ctx context.Context, operation, stream string, msg *nats.Msg, options ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if len(msg.Data) > MaxMessage {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d", operation, ErrTooLarge, len(msg.Data), MaxMessage)
	}
	ctx, done, err := s.calls.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	defer done()
	if s.folder != nil {
		if err := s.folder.take(len(msg.Data)); err != nil {
			return nil, fmt.Errorf("%s: %w", operation, err)
		}
	}
	ack, err := s.js.PublishMsg(ctx, msg, append(options, jetstream.WithExpectStream(stream))...)
	if err != nil {
		return nil, fault(ctx, operation, err)
	}
	return ack, nil
}

func (l *streamLog) Read(ctx context.Context, from Seq, yield func(Message) error) error {
	next := max(from, 1)
	state, err := l.State(ctx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case next > state.Last+1:
		return fmt.Errorf("read %s: %w: it ends at message %d, and %d is asked for", l.stream, ErrDamaged, state.Last, next)
	}
	r := reader{store: l.store, stream: l.stream, next: uint64(next)}
	return r.run(ctx, func(m *jetstream.MsgMetadata, msg jetstream.Msg) error {
		seq := Seq(m.Sequence.Stream)
		if seq != next {
			if err := l.allowGap(ctx, next, seq); err != nil {
				return err
			}
		}
		next = seq + 1
		return yield(Message{Seq: seq, Time: m.Timestamp, Data: msg.Data()})
	}, nil)
}

// allowGap says whether the messages from next until seq are missing because they
// were purged: then seq is, or was, the first.
func (l *streamLog) allowGap(ctx context.Context, next, seq Seq) error {
	state, err := l.State(ctx)
	if err != nil {
		return err
	}
	if seq > state.First {
		return fmt.Errorf("read %s: %w: messages %d to %d are missing", l.stream, ErrDamaged, next, seq-1)
	}
	return nil
}

func (l *streamLog) State(ctx context.Context) (LogState, error) {
	ctx, done, err := l.store.calls.begin(ctx)
	if err != nil {
		return LogState{}, fmt.Errorf("state of %s: %w", l.stream, err)
	}
	defer done()
	info, err := l.store.streamInfo(ctx, l.stream)
	if err != nil {
		return LogState{}, err
	}
	st := info.State
	return LogState{First: max(Seq(st.FirstSeq), 1), Last: Seq(st.LastSeq), Bytes: st.Bytes}, nil
}
