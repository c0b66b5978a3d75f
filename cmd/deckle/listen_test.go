package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/dns/dnsmessage"

	"deckle/internal/config"
	"deckle/internal/sim"
)

// certificate writes a certificate for this machine and its key into dir, as
// NAME.pem and NAME.key, and returns who has to be believed.
func certificate(t *testing.T, dir, name string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		name + ".pem": {Type: "CERTIFICATE", Bytes: der},
		name + ".key": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, path), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return pool
}

// server adds keys to [server] of a deckle.toml.
func server(keys string) func(toml, template string) (string, string) {
	return func(toml, template string) (string, string) {
		return strings.Replace(toml, "[server]\n", "[server]\n"+keys, 1), template
	}
}

// clients speak one version of HTTP each.
func clients(t *testing.T, roots *x509.CertPool) map[string]http.RoundTripper {
	t.Helper()
	config := func() *tls.Config { return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12} }
	one := &http.Transport{TLSClientConfig: config(), Protocols: new(http.Protocols)}
	one.Protocols.SetHTTP1(true)
	two := &http.Transport{TLSClientConfig: config(), ForceAttemptHTTP2: true}
	three := &http3.Transport{TLSClientConfig: config()}
	t.Cleanup(func() {
		one.CloseIdleConnections()
		two.CloseIdleConnections()
		_ = three.Close()
	})
	return map[string]http.RoundTripper{"HTTP/1.1": one, "HTTP/2.0": two, "HTTP/3.0": three}
}

// fetch asks for a page as a reader's browser does.
func fetch(ctx context.Context, client http.RoundTripper, url string) (*http.Response, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0.0.0")
	r.Header.Set("Sec-Fetch-Dest", "document")
	resp, err := client.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// A page with slots is the same whichever version of HTTP its reader speaks; a page
// that is under way when the end comes is delivered whole; and one that breaks off
// does not look whole.
func TestEveryHTTP(t *testing.T) {
	dir := t.TempDir()
	roots := certificate(t, dir, "site")
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	defer end()
	d, ended := serveDemo(t, ctx, world, nil, server(fmt.Sprintf("tls_cert = %q\ntls_key = %q\nhttp3 = true\n", dir+"/site.pem", dir+"/site.key")))
	url := strings.Replace(d.url, "http:", "https:", 1)
	world.Publisher.Handle("/2026/page", sim.Page{Chunks: []string{"<!doctype html><head></head>", "<body><p>whole</p></body>"}})
	world.Publisher.Handle("/2026/broken", sim.Page{Chunks: []string{"<!doctype html><head></head>", "<body><p>whole</p></body>"}, Abort: true})
	world.Publisher.Handle("/2026/slow", sim.Page{FirstByte: time.Second, Chunks: []string{"<!doctype html><head></head><body><p>whole</p></body>"}})

	readers := clients(t, roots)
	for version, client := range readers {
		resp, body, err := fetch(t.Context(), client, url+"/2026/page")
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		if resp.Proto != version || !strings.Contains(body, `data-deckle="slots"`) || !strings.Contains(body, "<p>whole</p>") {
			t.Errorf("%s: got %s %q", version, resp.Proto, body)
		}
		announced := strings.Contains(resp.Header.Get("Alt-Svc"), "h3=\":"+url[strings.LastIndex(url, ":")+1:]+`"`)
		if announced != (version != "HTTP/3.0") {
			t.Errorf("%s: Alt-Svc = %q", version, resp.Header.Get("Alt-Svc"))
		}
		if _, body, err := fetch(t.Context(), client, url+"/2026/broken"); err == nil {
			t.Errorf("%s: a page that broke off looks whole: %q", version, body)
		}
	}
	for _, r := range world.Publisher.Requests() {
		if r.Header.Get("X-Forwarded-Proto") != "https" {
			t.Errorf("%s was asked for by %q", r.URI, r.Header.Get("X-Forwarded-Proto"))
		}
	}
	mustDrain(t, world, readers, url, end)
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
}

// mustDrain ends the server while every reader has a page under way.
func mustDrain(t *testing.T, world *sim.World, readers map[string]http.RoundTripper, url string, end func()) {
	t.Helper()
	before := len(world.Publisher.Requests())
	got := make(chan string, len(readers))
	for version, client := range readers {
		go func() {
			_, body, err := fetch(context.WithoutCancel(t.Context()), client, url+"/2026/slow")
			if err != nil || !strings.Contains(body, "<p>whole</p>") {
				got <- fmt.Sprintf("%s: the page under way was %q, %v", version, body, err)
				return
			}
			got <- ""
		}()
	}
	within(t, func() bool { return len(world.Publisher.Requests()) == before+len(readers) })
	end()
	for range readers {
		if problem := <-got; problem != "" {
			t.Error(problem)
		}
	}
}

// A certificate is replaced without a restart, and one that cannot be used changes
// nothing.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "site")
	files, err := openCertificate(dir+"/site.pem", dir+"/site.key")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	first, _ := files.get(nil)
	if err := os.WriteFile(dir+"/site.key", []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	files.renew(log)
	if now, _ := files.get(nil); now != first {
		t.Error("a key that cannot be read has replaced the certificate")
	}
	if files.states() == files.seen {
		t.Error("nobody would notice that the files have changed")
	}
	certificate(t, dir, "site")
	files.renew(log)
	if now, _ := files.get(nil); now == first {
		t.Error("the certificate has not been replaced")
	}
}

// A certificate that cannot be used refuses the start.
func TestBadCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "one")
	certificate(t, dir, "two")
	for _, s := range []config.Server{
		{TLSCert: dir + "/one.pem", TLSKey: dir + "/two.key"},
		{TLSCert: dir + "/one.key", TLSKey: dir + "/one.key"},
		{TLSCert: dir + "/none.pem", TLSKey: dir + "/one.key"},
	} {
		s.Listen = "127.0.0.1:0"
		if f, err := openFront(s, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v is taken", s)
			_ = f.Close()
		}
	}
}

// A certificate is had from a certificate authority by ACME (RFC 8555): Pebble, which
// asks back by TLS-ALPN-01.
func TestACME(t *testing.T) {
	if os.Getenv("DECKLE_SLOW") == "" {
		t.Skip("DECKLE_SLOW is not set")
	}
	world, err := sim.Start(context.WithoutCancel(t.Context()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer world.Close()
	dir, listen := t.TempDir(), freeAddr(t)
	certificate(t, dir, "pebble")
	directory := startPebble(t, dir, listen, answerNames(t))
	if _, err := demoConfig(world, dir, listen, freeAddr(t)); err != nil {
		t.Fatal(err)
	}
	editFiles(t, dir, server(fmt.Sprintf("acme_hosts = [\"www.deckle.test\"]\nacme_directory = \"https://%s/dir\"\nacme_cache = %q\n", directory, dir+"/acme")))
	start(t, exec.Command("deckle", "serve", "--config", dir+"/deckle.toml"), listen, t.Output(), "SSL_CERT_FILE="+dir+"/pebble.pem")

	issuer := func(name string) string {
		c, err := tls.Dial("tcp", listen, &tls.Config{ServerName: name, InsecureSkipVerify: true}) // Pebble makes its root anew at each start
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Issuer.CommonName
	}
	if got := issuer("www.deckle.test"); !strings.HasPrefix(got, "Pebble Intermediate CA") {
		t.Errorf("the certificate is from %q", got)
	}
	if got := issuer("other.deckle.test"); strings.HasPrefix(got, "Pebble") {
		t.Error("a certificate was got for a host that is not ours")
	}
	if cached, err := filepath.Glob(dir + "/acme/www.deckle.test*"); err != nil || len(cached) == 0 {
		t.Errorf("nothing is kept for the next start: %v", err)
	}
}

// startPebble starts a certificate authority that asks back at listen, and returns
// where its directory is.
func startPebble(t *testing.T, dir, listen, names string) (directory string) {
	t.Helper()
	program, err := exec.LookPath("pebble")
	if err != nil {
		t.Fatal("no pebble on this machine, and this test is about a real certificate authority: install it (Debian: apt-get install pebble)")
	}
	directory = freeAddr(t)
	_, port, _ := net.SplitHostPort(listen)
	file := filepath.Join(dir, "pebble.json")
	text := fmt.Sprintf(`{"pebble":{"listenAddress":%q,"managementListenAddress":%q,"certificate":%q,"privateKey":%q,"httpPort":1,"tlsPort":%s}}`,
		directory, freeAddr(t), dir+"/pebble.pem", dir+"/pebble.key", port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, exec.Command(program, "-config", file, "-dnsserver", names), directory, t.Output(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=5")
	return directory
}

// start runs a program until the test ends, and returns when it listens. What it says
// goes to out.
func start(t *testing.T, cmd *exec.Cmd, listen string, out io.Writer, env ...string) {
	t.Helper()
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	within(t, func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// answerNames is a DNS server for which every name is this machine.
func answerNames(t *testing.T) (address string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		b := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			q := m.Questions[0]
			answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true}, Questions: m.Questions}
			if q.Type == dnsmessage.TypeA {
				answer.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
				}}
			}
			if packed, err := answer.Pack(); err == nil {
				_, _ = conn.WriteTo(packed, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}
