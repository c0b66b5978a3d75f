package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A reader follows a stream, in order, for as long as it is wanted. It asks the
// engine for a consumer; whenever that breaks, for another one from where it was.
type reader struct {
	store  *Store
	stream string
	next   uint64 // sequence of the next message
	newest bool   // only the newest message of each subject, until one was read

	caughtUp bool // nothing was pending once
}

// receive gets a message that is the next one of its stream.
type receive func(*jetstream.MsgMetadata, jetstream.Msg) error

const (
	readAhead = 256 // messages that are on their way to a reader

	// A consumer that nobody has asked for anything is removed by the engine.
	consumerIdle = time.Minute

	// What is pending comes soon. If it does not, it may have expired since it was
	// counted; or be counted and not readable.
	soon         = 2 * time.Second
	maxFruitless = 5

	firstRetry, lastRetry = 50 * time.Millisecond, 2 * time.Second
)

var errNothingCame = errors.New("what is pending did not come")

// refusal is an error of the one who reads, which ends the reading.
type refusal struct{ error }

// run calls yield for each message until ctx is done. caughtUp, which may be nil,
// is called once, when all that was there at some moment has been yielded.
func (r *reader) run(ctx context.Context, yield receive, caughtUp func() error) error {
	end := context.AfterFunc // of both: the caller's wish and the store's end
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer end(r.store.calls.life, cancel)()

	fruitless := 0 // sessions that had something to give and gave nothing
	for retry := firstRetry; ; retry = min(2*retry, lastRetry) {
		before := r.next
		err := r.session(ctx, yield, caughtUp)
		if fruitless++; !errors.Is(err, errNothingCame) || r.next != before {
			fruitless = 0
		}
		if fruitless == maxFruitless {
			return fmt.Errorf("read %s: %w: what is at message %d or after cannot be read", r.stream, ErrDamaged, r.next)
		}
		if refused, ok := errors.AsType[refusal](err); ok {
			return refused.error
		}
		if r.store.calls.life.Err() != nil {
			return fmt.Errorf("read %s: %w: %w", r.stream, ErrUnavailable, errClosed)
		}
		if ctx.Err() != nil {
			return nil
		}
		if e := r.store.engine; e != nil && !e.running() {
			return fmt.Errorf("read %s: %w: the engine has stopped: %s", r.stream, ErrUnavailable, e.log.lastWords())
		}
		if r.next != before {
			retry = firstRetry
		}
		r.store.log.Debug("store: reading is resumed", "stream", r.stream, "next", r.next, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// session reads from one consumer until it breaks.
func (r *reader) session(ctx context.Context, yield receive, caughtUp func() error) error {
	link := r.store.links.current()
	consumer, err := r.consume(ctx)
	if err != nil {
		return err
	}
	defer r.drop(consumer)
	messages, err := consumer.Messages(
		jetstream.PullMaxMessages(readAhead),
		jetstream.PullExpiry(10*time.Second),
		jetstream.PullHeartbeat(2*time.Second),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	defer context.AfterFunc(link, messages.Stop)()

	pending := consumer.CachedInfo().NumPending
	for delivered := uint64(1); ; delivered++ {
		if pending == 0 {
			if err := r.arrive(caughtUp); err != nil {
				return err
			}
		}
		msg, err := next(messages, pending > 0)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != delivered {
			return fmt.Errorf("message %d of the consumer came as %d", meta.Sequence.Consumer, delivered)
		}
		if err := yield(meta, msg); err != nil {
			return refusal{err}
		}
		r.next, r.newest, pending = meta.Sequence.Stream+1, false, meta.NumPending
	}
}

// next waits for a message; not for long if one is pending.
func next(messages jetstream.MessagesContext, pending bool) (jetstream.Msg, error) {
	if !pending {
		return messages.Next()
	}
	msg, err := messages.Next(jetstream.NextMaxWait(soon))
	if errors.Is(err, nats.ErrTimeout) {
		return nil, errNothingCame
	}
	return msg, err
}

func (r *reader) arrive(caughtUp func() error) error {
	if r.caughtUp || caughtUp == nil {
		return nil
	}
	r.caughtUp = true
	if err := caughtUp(); err != nil {
		return refusal{err}
	}
	return nil
}

func (r *reader) consume(ctx context.Context) (jetstream.Consumer, error) {
	c := jetstream.ConsumerConfig{
		AckPolicy:         jetstream.AckNonePolicy,
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.next,
		InactiveThreshold: consumerIdle,
		MemoryStorage:     true,
		Replicas:          1,
	}
	if r.newest {
		c.DeliverPolicy, c.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
		c.FilterSubject = ">"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.store.config.CallTimeout, errSlow)
	defer cancel()
	return r.store.js.CreateConsumer(ctx, r.stream, c)
}

// drop removes a consumer, so that the engine need not wait until it is idle.
func (r *reader) drop(c jetstream.Consumer) {
	if r.store.conn.IsClosed() || !r.store.conn.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	_ = r.store.js.DeleteConsumer(ctx, r.stream, c.CachedInfo().Name) // it is removed when idle
}
