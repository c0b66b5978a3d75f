package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A spec is a stream that a store has. The engine's defaults have no limits at
// all, so each is said.
type spec struct {
	name     string // of the stream
	subjects []string
	bytes    int64
	message  int32 // most bytes of one message, with its headers
	age      time.Duration
	history  int64 // values kept of each key; -1 where there are no keys
	drop     bool  // the oldest messages make room; else nothing more is taken
}

// fullMessage is a message with its headers; an engine takes 1 MiB by default.
const fullMessage = MaxMessage + 64<<10

const (
	journalStream  = "journal"
	auctionsStream = "auctions"
	journalSubject = "deckle.journal"
	auctionSubject = "deckle.auctions"
	assetsBucket   = "assets"
)

// specs are all streams. Buckets of keys and of objects are streams whose names
// and subjects the protocol of NATS fixes.
func specs() []spec {
	return []spec{
		{name: journalStream, subjects: []string{journalSubject}, bytes: 64 << 30, message: fullMessage, history: -1},
		{name: auctionsStream, subjects: []string{auctionSubject}, bytes: 1 << 30, message: fullMessage, age: 7 * 24 * time.Hour, history: -1, drop: true},
		keyed("catalog", 1<<30, fullMessage, 0, 10),
		pages(),
		keyed("leases", 256<<20, 256<<10, 0, 1),
		keyed("keys", 64<<20, 64<<10, 0, 1),
		keyed("drafts", 256<<20, 256<<10, 0, 1),
		{name: "OBJ_" + assetsBucket, subjects: []string{"$O." + assetsBucket + ".C.>", "$O." + assetsBucket + ".M.>"}, bytes: 8 << 30, message: fullMessage, history: -1},
	}
}

func keyed(name string, bytes int64, message int32, age time.Duration, history int64) spec {
	return spec{
		name: keyedStream(name), subjects: []string{keySubject(name, ">")},
		bytes: bytes, message: message, age: age, history: history,
	}
}

// pages is a bucket that strangers cause writes to: it makes room by itself, and what
// readers come for is written anew before its turn comes.
func pages() spec {
	p := keyed("pages", 256<<20, 64<<10, 30*24*time.Hour, 1)
	p.drop = true
	return p
}

func keyedStream(bucket string) string     { return "KV_" + bucket }
func keySubject(bucket, key string) string { return "$KV." + bucket + "." + key }

// isLog reports whether messages are only ever removed from the front.
func (p *spec) isLog() bool { return p.name == journalStream || p.name == auctionsStream }

// totalBytes is what all streams may have together. The engine refuses a stream
// whose limit it could not hold.
func totalBytes() (n int64) {
	for _, p := range specs() {
		n += p.bytes
	}
	return n
}

func (p *spec) config(replicas int) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              p.name,
		Subjects:          p.subjects,
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          p.bytes,
		MaxAge:            p.age,
		MaxMsgSize:        p.message,
		MaxMsgsPerSubject: p.history,
		Discard:           jetstream.DiscardNew,
		Duplicates:        2 * time.Minute,
		Replicas:          replicas,
		DenyDelete:        !strings.HasPrefix(p.name, "OBJ_"),
		AllowRollup:       !p.isLog(),
		// A direct get is answered by any replica, however far behind: never the basis
		// of a decision.
		AllowDirect: false,
	}
	if p.drop {
		c.Discard = jetstream.DiscardOld
	}
	return c
}

// openStreams makes the streams that are missing, and sees to the settings of
// those that are there.
func (s *Store) openStreams(ctx context.Context) error {
	if err := s.examineFound(ctx); err != nil {
		return err
	}
	if !s.how.asIs {
		if err := s.makeStreams(ctx); err != nil {
			return err
		}
	}
	if err := s.examineExtents(ctx); err != nil {
		return err
	}
	s.journal = &streamLog{store: s, stream: journalStream, subject: journalSubject}
	s.auctions = &streamLog{store: s, stream: auctionsStream, subject: auctionSubject}
	for name, b := range map[string]**bucket{"catalog": &s.catalog, "pages": &s.pages, "leases": &s.leases, "drafts": &s.drafts} {
		var err error
		if *b, err = s.openBucket(ctx, name); err != nil && !(s.how.asIs && errors.Is(err, ErrNotFound)) {
			return err
		}
	}
	if s.how.asIs {
		return nil
	}
	var err error
	s.assets, err = s.openAssets(ctx)
	return err
}

func (s *Store) makeStreams(ctx context.Context) error {
	if s.folder == nil {
		// An engine that has nothing of ours, beside a folder that has.
		_, err := s.streamInfo(ctx, journalStream)
		if errors.Is(err, ErrNotFound) {
			if err := refuseOrphan(s.config.DataDir, "", s.how); err != nil {
				return err
			}
		} else if err != nil {
			return err
		}
	}
	for _, p := range specs() {
		if err := s.makeStream(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) makeStream(ctx context.Context, p spec) error {
	info, err := s.streamInfo(ctx, p.name)
	switch {
	case errors.Is(err, ErrNotFound):
		return s.createStream(ctx, p)
	case err != nil:
		return err
	}
	have := info.Config
	if foreign := p.foreign(have); len(foreign) > 0 {
		return fmt.Errorf("stream %s is not ours, or was changed so that it cannot be used: %s; remove what has that name, or use another engine", p.name, strings.Join(foreign, ", "))
	}
	want := p.merge(have, s.config.Mode)
	if settingsEqual(have, want) {
		return nil
	}
	s.log.Info("store: stream has other settings, and gets ours", "stream", p.name)
	ctx, cancel := context.WithTimeout(ctx, s.config.CallTimeout)
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, want); err != nil {
		return fault(ctx, fmt.Sprintf("give stream %s our settings (they are not what it has; change it with the tools of NATS)", p.name), err)
	}
	return nil
}

// createStream makes a stream, on three nodes where there are several.
func (s *Store) createStream(ctx context.Context, p spec) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	replicas := 1
	if s.config.Mode == External && s.conn.ConnectedClusterName() != "" {
		replicas = 3
	}
	_, err := s.js.CreateStream(ctx, p.config(replicas))
	if answer, ok := errors.AsType[*jetstream.APIError](err); ok && answer.ErrorCode == codeReplicasAlone {
		_, err = s.js.CreateStream(ctx, p.config(1))
	}
	return fault(ctx, fmt.Sprintf("make stream %s (%d MiB; one that you make yourself before may have less)", p.name, p.bytes>>20), err)
}

// foreign says what of a stream's settings cannot be changed and makes it useless
// to us, or shows that it is somebody else's.
func (p *spec) foreign(have jetstream.StreamConfig) (faults []string) {
	say := func(bad bool, text string) {
		if bad {
			faults = append(faults, text)
		}
	}
	say(have.Storage != jetstream.FileStorage, "it is kept in memory")
	say(have.Retention != jetstream.LimitsPolicy, fmt.Sprintf("its retention is %v", have.Retention))
	say(have.PersistMode != jetstream.DefaultPersistMode, "it is persisted after the acknowledgement")
	say(have.NoAck, "it acknowledges nothing")
	say(have.Sealed, "it is sealed")
	say(have.DenyPurge, "it cannot be purged")
	say(have.Mirror != nil || len(have.Sources) > 0, "it copies another stream")
	say(have.SubjectTransform != nil || have.RePublish != nil, "it sends messages on under other subjects")
	say(!slices.Equal(have.Subjects, p.subjects), fmt.Sprintf("its subjects are %q", have.Subjects))
	return faults
}

// merge is what a stream should be, with what is the operator's to decide:
// replicas, placement, and on an engine of their own how much it may hold.
func (p *spec) merge(have jetstream.StreamConfig, mode Mode) jetstream.StreamConfig {
	want := p.config(have.Replicas)
	want.Description, want.Metadata = have.Description, have.Metadata
	want.Placement, want.Compression = have.Placement, have.Compression
	want.DenyDelete = have.DenyDelete || want.DenyDelete
	if mode == External && have.MaxBytes > 0 {
		want.MaxBytes = have.MaxBytes
	}
	return want
}

// settingsEqual compares what merge decides.
func settingsEqual(a, b jetstream.StreamConfig) bool {
	return a.MaxMsgs == b.MaxMsgs && a.MaxBytes == b.MaxBytes && a.MaxAge == b.MaxAge && a.MaxMsgSize == b.MaxMsgSize &&
		a.MaxMsgsPerSubject == b.MaxMsgsPerSubject && a.MaxConsumers == b.MaxConsumers && a.Discard == b.Discard &&
		a.DiscardNewPerSubject == b.DiscardNewPerSubject && a.Duplicates == b.Duplicates && a.DenyDelete == b.DenyDelete &&
		a.AllowRollup == b.AllowRollup && a.AllowDirect == b.AllowDirect
}

// streamInfo asks the stream's leader. A missing stream is ErrNotFound.
func (s *Store) streamInfo(ctx context.Context, name string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.CallTimeout, errSlow)
	defer cancel()
	stream, err := s.openStream(ctx, name)
	if err != nil {
		return nil, err
	}
	return stream.CachedInfo(), nil
}

func (s *Store) openStream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := s.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("stream %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, fault(ctx, "ask for stream "+name, err)
	}
	return stream, nil
}

// examineExtents refuses a store that has less than it had when it was closed, or
// a log with a hole.
func (s *Store) examineExtents(ctx context.Context) error {
	if s.folder == nil || s.how.salvage {
		return nil
	}
	for _, p := range specs() {
		info, err := s.streamInfo(ctx, p.name)
		if errors.Is(err, ErrNotFound) && s.how.asIs {
			continue
		}
		if err != nil {
			return err
		}
		was, known := s.folder.marker.Streams[p.name]
		if err := p.examine(info.State, was, known && s.folder.marker.Closed); err != nil {
			return fmt.Errorf("stream %s: %w: %w; %s", p.name, ErrDamaged, err, damageRemedy)
		}
	}
	return nil
}

// examine compares what a stream has with what it had; untouched says that nobody
// but time has changed it since.
func (p *spec) examine(is jetstream.StreamState, was extent, untouched bool) error {
	switch {
	case is.LastSeq < was.Last:
		return fmt.Errorf("it ends at message %d, and was at %d when it was closed", is.LastSeq, was.Last)
	case p.isLog() && is.NumDeleted > 0:
		return fmt.Errorf("%d messages are missing between %d and %d", is.NumDeleted, is.FirstSeq, is.LastSeq)
	case untouched && p.age == 0 && is.FirstSeq > was.First && p.isLog(),
		// A write that nobody waited for any more may have come after the count.
		untouched && p.age == 0 && is.LastSeq == was.Last && is.Msgs != was.Messages:
		return fmt.Errorf("it has %d messages from %d on, and had %d from %d on when it was closed", is.Msgs, is.FirstSeq, was.Messages, was.First)
	default:
		return nil
	}
}

// rememberExtents writes down what the streams have, for examineExtents. A store
// that cannot say keeps what was written before.
func (s *Store) rememberExtents() error {
	if s.folder == nil || !s.opened || s.how.asIs || !s.engine.running() {
		return nil
	}
	have := map[string]extent{}
	for _, p := range specs() {
		info, err := s.streamInfo(context.Background(), p.name)
		if err != nil {
			return nil
		}
		have[p.name] = extent{First: info.State.FirstSeq, Last: info.State.LastSeq, Messages: info.State.Msgs}
	}
	s.folder.marker.Streams, s.folder.marker.Closed = have, true
	return s.folder.writeMarker()
}
