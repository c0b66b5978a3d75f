package store_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"deckle/internal/store"
)

// startServer starts an engine that somebody else runs, on a port of this machine.
func startServer(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.Port = "127.0.0.1", -1
	o.NoSigs, o.NoLog = true, true
	o.JetStream, o.SyncAlways = true, true
	o.JetStreamMaxStore = 1 << 40
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	srv, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	go srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	return srv
}

func external(t *testing.T, urls ...string) store.Config {
	return store.Config{Mode: store.External, DataDir: t.TempDir(), URLs: urls}
}

func TestContractExternal(t *testing.T) {
	t.Parallel()
	contract(t, func(t *testing.T) *store.Store {
		return open(t, external(t, startServer(t, server.Options{}).ClientURL()))
	})
}

func TestExternalStatus(t *testing.T) {
	t.Parallel()
	srv := startServer(t, server.Options{})
	st := open(t, external(t, "nats://127.0.0.1:1", srv.ClientURL()))
	appendMany(t, st.Journal(), 3, 0)
	status, err := st.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Mode != store.External || status.Folder != "" || status.Server != srv.ClientURL() || status.Offset.Abs() > time.Second || status.Free != -1 {
		t.Errorf("status = %+v", status)
	}
	if s := status.Streams[0]; s.Name != "journal" || s.Messages != 3 || s.Last != 3 || s.MaxBytes <= 0 || s.MaxMessage <= 0 || s.Replicas != 1 {
		t.Errorf("journal = %+v", s)
	}
	if len(contents(t, t.TempDir())) > 0 {
		t.Error("files were made")
	}
}

func TestExternalUnreachable(t *testing.T) {
	t.Parallel()
	c := external(t, "nats://deckle:hunter2@127.0.0.1:1")
	_, err := store.Open(t.Context(), c, discard)
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("err = %v, want ErrUnavailable that names the server, without its password", err)
	}
}

// Starting elsewhere beside a store in data_dir would forget that.
func TestExternalBesideEmbedded(t *testing.T) {
	t.Parallel()
	c := external(t, startServer(t, server.Options{}).ClientURL())
	fill(t, c.DataDir)
	_, err := store.Open(t.Context(), c, discard)
	if err == nil || !strings.Contains(err.Error(), "deckle store import "+c.DataDir) {
		t.Fatalf("err = %v, want the way to import", err)
	}
	if _, err := store.ImportFrom(t.Context(), c, c.DataDir, false, discard); err != nil {
		t.Fatal(err)
	}
	st := open(t, c)
	if e, err := st.Catalog().Get(t.Context(), "site/a"); err != nil || string(e.Value) != "2" {
		t.Errorf("get = %+v, %v", e, err)
	}
	if state, err := st.Journal().State(t.Context()); err != nil || state.First != 9 || state.Last != 20 {
		t.Errorf("journal = %+v, %v; want 9 to 20", state, err)
	}
}

func TestStreamsOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config jetstream.StreamConfig
		want   string // of the error; "" if it is taken
	}{
		"in memory":                   {jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}, Storage: jetstream.MemoryStorage}, "it is kept in memory"},
		"of orders":                   {jetstream.StreamConfig{Name: "journal", Subjects: []string{"orders.>"}}, `its subjects are ["orders.>"]`},
		"a queue":                     {jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}, Retention: jetstream.WorkQueuePolicy}, "its retention is WorkQueue"},
		"late to disk":                {jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}, PersistMode: jetstream.AsyncPersistMode}, "persisted after the acknowledgement"},
		"unlimited":                   {jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}}, ""},
		"small":                       {jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}, MaxBytes: 1 << 20}, ""},
		"direct gets":                 {jetstream.StreamConfig{Name: "KV_catalog", Subjects: []string{"$KV.catalog.>"}, MaxMsgsPerSubject: 3, AllowDirect: true, AllowRollup: true, DenyDelete: true, Discard: jetstream.DiscardNew}, ""},
		"a subject of ours elsewhere": {jetstream.StreamConfig{Name: "everything", Subjects: []string{"deckle.>"}}, "make stream journal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := startServer(t, server.Options{})
			js := jetStreamOf(t, srv)
			if _, err := js.CreateStream(t.Context(), test.config); err != nil {
				t.Fatal(err)
			}
			c := external(t, srv.ClientURL())
			if test.want != "" {
				if st, err := store.Open(t.Context(), c, discard); err == nil {
					t.Error("opened", st.Close())
				} else if !strings.Contains(err.Error(), test.want) || errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%v\ndoes not say %q", err, test.want)
				}
				return
			}
			open(t, c)
			stream, err := js.Stream(t.Context(), test.config.Name)
			if err != nil {
				t.Fatal(err)
			}
			got := stream.CachedInfo().Config
			if got.Discard != jetstream.DiscardNew || got.MaxBytes <= 0 || got.MaxMsgSize <= 0 || got.AllowDirect {
				t.Errorf("the stream became %+v", got)
			}
			if want := test.config.MaxBytes; want > 0 && got.MaxBytes != want {
				t.Errorf("the operator's %d bytes became %d", want, got.MaxBytes)
			}
		})
	}
}

func jetStreamOf(t *testing.T, srv *server.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(srv.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A full journal refuses, and takes again when there is room.
func TestFullStream(t *testing.T) {
	t.Parallel()
	srv := startServer(t, server.Options{})
	js := jetStreamOf(t, srv)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "journal", Subjects: []string{"deckle.journal"}, MaxBytes: 4000}); err != nil {
		t.Fatal(err)
	}
	st := open(t, external(t, srv.ClientURL()))
	var acked store.Seq
	var err error
	for i := 0; err == nil && i < 20; i++ {
		var seq store.Seq
		id := fmt.Sprint("id", i)
		if seq, err = st.Journal().Append(t.Context(), id, message(id)); err == nil {
			acked = seq
		}
	}
	if !errors.Is(err, store.ErrFull) || !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("err = %v, want ErrFull", err)
	}
	state, err := st.Journal().State(t.Context())
	if err != nil || state.Last != acked || state.First != 1 {
		t.Errorf("state = %+v, %v; want 1 to %d", state, err, acked)
	}
	if err := store.Purge(st, 3); err != nil {
		t.Fatal(err)
	}
	if seq, err := st.Journal().Append(t.Context(), "more", message("more")); err != nil || seq != acked+1 {
		t.Errorf("append after a purge = %d, %v", seq, err)
	}
}

// A cut is between us and the engine: it can be made, and healed.
type cut struct {
	listener net.Listener
	target   string

	silent atomic.Bool // what the engine says is lost on its way

	mu    sync.Mutex
	conns []net.Conn
	down  bool
}

func newCut(t *testing.T, target string) *cut {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cut{listener: l, target: target}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { c.forward(in) })
		}
	})
	t.Cleanup(func() { l.Close(); c.set(true); wg.Wait() })
	return c
}

func (c *cut) forward(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	if c.down {
		c.mu.Unlock()
		return
	}
	c.conns = append(c.conns, in, out)
	c.mu.Unlock()
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(lossy{in, &c.silent}, out); done <- struct{}{} }()
	go func() { _, _ = io.Copy(out, in); done <- struct{}{} }()
	<-done
}

// A lossy writer takes everything and loses it when silent.
type lossy struct {
	net.Conn
	silent *atomic.Bool
}

func (l lossy) Write(data []byte) (int, error) {
	if l.silent.Load() {
		return len(data), nil
	}
	return l.Conn.Write(data)
}

// set cuts the link, or heals it.
func (c *cut) set(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

func (c *cut) url() string { return "nats://" + c.listener.Addr().String() }

// What was on its way when the connection broke is read, though nothing follows it
// that would show that it is missing.
func TestLastMessageBeforeTheCut(t *testing.T) {
	t.Parallel()
	srv := startServer(t, server.Options{})
	link := newCut(t, srv.Addr().String())
	reading := open(t, external(t, link.url()))
	writing := open(t, external(t, srv.ClientURL()))
	got := make(chan store.Seq, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- reading.Journal().Read(ctx, 1, func(m store.Message) error { got <- m.Seq; return nil })
	}()
	for seq := store.Seq(1); seq <= 3; seq++ {
		link.silent.Store(seq > 1) // the first shows that the reader is there
		id := fmt.Sprint("id", seq)
		if _, err := writing.Journal().Append(ctx, id, message(id)); err != nil {
			t.Fatal(err)
		}
		if seq > 1 {
			link.set(true)
			link.silent.Store(false)
			link.set(false)
		}
		select {
		case read := <-got:
			if read != seq {
				t.Errorf("message %d came as %d", seq, read)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("message %d did not come", seq)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Readers and watchers miss nothing when the connection breaks, again and again.
func TestReconnections(t *testing.T) {
	t.Parallel()
	srv := startServer(t, server.Options{})
	link := newCut(t, srv.Addr().String())
	reading := open(t, external(t, link.url()))
	writing := open(t, external(t, srv.ClientURL()))
	const n = 300
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()

	var wg sync.WaitGroup
	enough := errors.New("enough")
	wg.Go(func() {
		next := store.Seq(1)
		err := reading.Journal().Read(ctx, 1, func(m store.Message) error {
			if m.Seq != next || idOf(m.Data) != fmt.Sprint("id", m.Seq) {
				return fmt.Errorf("message %d came as %d: %q", next, m.Seq, idOf(m.Data))
			}
			if next++; m.Seq%50 == 0 {
				link.set(true)
				link.set(false)
			}
			if m.Seq == n {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) {
			t.Errorf("reading ended at %d with %v", next, err)
		}
	})
	wg.Go(func() {
		completes, last := 0, uint64(0)
		err := reading.Catalog().Watch(ctx, func(c store.Change) error {
			if c.Complete {
				completes++
			} else if c.Revision <= last {
				return fmt.Errorf("revision %d after %d", c.Revision, last)
			} else {
				last = c.Revision
			}
			if string(c.Value) == fmt.Sprint(n) {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || completes != 1 {
			t.Errorf("watching ended with %v, complete %d times", err, completes)
		}
	})
	revision := uint64(0)
	for i := 1; i <= n; i++ {
		id := fmt.Sprint("id", i)
		if _, err := writing.Journal().Append(ctx, id, message(id)); err != nil {
			t.Fatal(err)
		}
		var err error
		if revision, err = writing.Catalog().Put(ctx, "n", fmt.Append(nil, i), revision); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

// While the engine is away calls end in time with ErrUnavailable, nothing is sent
// later that nobody waits for, and work goes on when it is back.
func TestEngineAway(t *testing.T) {
	t.Parallel()
	srv := startServer(t, server.Options{})
	link := newCut(t, srv.Addr().String())
	c := external(t, link.url())
	c.CallTimeout = 300 * time.Millisecond
	st := open(t, c)
	appendMany(t, st.Journal(), 1, 0)
	link.set(true)

	start := time.Now()
	_, appendErr := st.Journal().Append(t.Context(), "lost", message("lost"))
	_, putErr := st.Catalog().Put(t.Context(), "a", []byte("1"), 0)
	_, getErr := st.Catalog().Get(t.Context(), "a")
	_, stateErr := st.Journal().State(t.Context())
	_, statusErr := st.Status(t.Context())
	_, blobErr := st.Assets().Put(t.Context(), []byte("x"), "")
	for _, err := range []error{appendErr, putErr, getErr, stateErr, statusErr, blobErr} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("err = %v, want ErrUnavailable", err)
		}
	}
	if took := time.Since(start); took > 6*c.CallTimeout+time.Second {
		t.Errorf("six calls took %v", took)
	}

	link.set(false)
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := st.Journal().Append(t.Context(), "back", message("back"))
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	state, err := st.Journal().State(t.Context())
	if err != nil || state.Last != 2 {
		t.Errorf("state = %+v, %v; want what was appended before and after", state, err)
	}
}

func TestExternalTLSAndCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, creds := operated(t)
	o.TLS, o.TLSConfig = true, selfSigned(t, filepath.Join(dir, "ca.pem"))
	srv := startServer(t, o)
	url := strings.Replace(srv.ClientURL(), "nats://", "tls://", 1)
	write(t, filepath.Join(dir, "user.creds"), creds)

	c := external(t, url)
	c.TLSCA, c.CredentialsFile = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "user.creds")
	appendMany(t, open(t, c).Journal(), 1, 0)

	without := c
	without.CredentialsFile = ""
	if _, err := store.Open(t.Context(), without, discard); err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "store.external") {
		t.Errorf("without credentials: %v, want a refusal that does not pass", err)
	}
	without = c
	without.TLSCA = ""
	if _, err := store.Open(t.Context(), without, discard); err == nil || errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "store.external.tls_ca") {
		t.Errorf("without the CA: %v, want a refusal that does not pass", err)
	}
}

// selfSigned makes a certificate for this machine and writes it as its own CA.
func selfSigned(t *testing.T, ca string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "engine"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// operated makes a server's options with an operator, an account, and a user,
// whose credentials it returns.
func operated(t *testing.T) (server.Options, string) {
	t.Helper()
	pair := func(make func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		kp, err := make()
		if err != nil {
			t.Fatal(err)
		}
		public, err := kp.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return kp, public
	}
	operator, operatorKey := pair(nkeys.CreateOperator)
	_, systemKey := pair(nkeys.CreateAccount)
	account, accountKey := pair(nkeys.CreateAccount)
	user, userKey := pair(nkeys.CreateUser)

	encode := func(claims jwt.Claims, by nkeys.KeyPair) string {
		token, err := claims.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	operatorClaims := jwt.NewOperatorClaims(operatorKey)
	operatorClaims.SystemAccount = systemKey
	claims := jwt.NewAccountClaims(accountKey)
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1}
	resolver := &server.MemAccResolver{}
	for key, token := range map[string]string{
		accountKey: encode(claims, operator),
		systemKey:  encode(jwt.NewAccountClaims(systemKey), operator),
	} {
		if err := resolver.Store(key, token); err != nil {
			t.Fatal(err)
		}
	}
	encode(operatorClaims, operator)
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(encode(jwt.NewUserClaims(userKey), account), seed)
	if err != nil {
		t.Fatal(err)
	}
	return server.Options{TrustedOperators: []*jwt.OperatorClaims{operatorClaims}, SystemAccount: systemKey, AccountResolver: resolver}, string(creds)
}
