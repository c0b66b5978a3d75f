package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/sync/errgroup"

	"deckle/internal/config"
	"deckle/internal/obs"
)

// A front is the public listener: HTTP/1.1 and HTTP/2 over TLS, with HTTP/3 beside
// them on the same port where that is switched on; or plain HTTP/1.1, behind a proxy
// that speaks TLS.
type front struct {
	net.Listener
	tls   *tls.Config       // nil: plain
	files *certificateFiles // nil: plain, or by ACME
	quic  net.PacketConn    // nil: no HTTP/3
	log   *slog.Logger
}

// openFront opens what readers come to. A certificate that cannot be used refuses the
// start.
func openFront(s config.Server, log *slog.Logger) (_ *front, err error) {
	f := &front{log: log}
	switch {
	case s.TLSCert != "":
		if f.files, err = openCertificate(s.TLSCert, s.TLSKey); err != nil {
			return nil, fmt.Errorf("server.tls_cert: %w", err)
		}
		f.tls = &tls.Config{GetCertificate: f.files.get, NextProtos: []string{"h2", "http/1.1"}}
	case len(s.ACMEHosts) > 0:
		manager := &autocert.Manager{
			Prompt:     autocert.AcceptTOS,
			Cache:      autocert.DirCache(s.ACMECache),
			HostPolicy: autocert.HostWhitelist(s.ACMEHosts...),
			Client:     &acme.Client{DirectoryURL: s.ACMEDirectory, UserAgent: "deckle"},
		}
		f.tls = manager.TLSConfig()
	}
	if f.Listener, err = listen("server.listen", s.Listen); err != nil {
		return nil, err
	}
	if f.tls == nil {
		return f, nil
	}
	f.tls.MinVersion = tls.VersionTLS12
	tcp := f.Listener.Addr()
	f.Listener = tls.NewListener(f.Listener, f.tls)
	if s.HTTP3 {
		if f.quic, err = net.ListenPacket("udp", tcp.String()); err != nil {
			return nil, errors.Join(fmt.Errorf("server.http3: %w", err), f.Close())
		}
	}
	return f, nil
}

// Close closes the listeners.
func (f *front) Close() error {
	err := f.Listener.Close()
	if f.quic != nil {
		err = errors.Join(err, f.quic.Close())
	}
	return err
}

// serve answers requests with h until ctx is done, and then drains: see [obs.Serve].
func (f *front) serve(ctx context.Context, h http.Handler, c obs.ServeConfig) error {
	g, ctx := errgroup.WithContext(ctx)
	if f.files != nil {
		g.Go(func() error { return f.files.watch(ctx, f.log) })
	}
	if f.quic != nil {
		h3 := f.http3(h, c)
		h = announced(h, h3)
		g.Go(func() error { return serveHTTP3(ctx, h3, f.quic, c) })
	}
	g.Go(func() error { return obs.Serve(ctx, f.Listener, h, c) })
	return g.Wait()
}

// reload reads the certificate again.
func (f *front) reload() {
	if f.files != nil {
		f.files.renew(f.log)
	}
}

func (f *front) http3(h http.Handler, c obs.ServeConfig) *http3.Server {
	return &http3.Server{
		Handler:        obs.Guard(h, c),
		TLSConfig:      f.tls,
		Port:           f.quic.LocalAddr().(*net.UDPAddr).Port,
		MaxHeaderBytes: 64 << 10,
		IdleTimeout:    2 * time.Minute,
		// No early data: what is in it can be sent again by anybody who saw it.
		QUICConfig: &quic.Config{Allow0RTT: false, MaxIdleTimeout: 2 * time.Minute},
		Logger:     slog.New(slog.DiscardHandler), // it names addresses
	}
}

// announced tells readers who came otherwise that there is HTTP/3 (RFC 9114 section
// 3.1.1).
func announced(h http.Handler, s *http3.Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = s.SetQUICHeaders(w.Header()) // fails only before s serves
		h.ServeHTTP(w, r)
	})
}

// serveHTTP3 is [obs.Serve] for HTTP/3.
func serveHTTP3(ctx context.Context, s *http3.Server, conn net.PacketConn, c obs.ServeConfig) error {
	drained := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Drain)
		defer cancel()
		drained <- s.Shutdown(ctx)
	})
	if err := s.Serve(conn); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve HTTP/3 on %s: %w", conn.LocalAddr(), err)
	}
	err := <-drained
	if err != nil {
		err = fmt.Errorf("drain HTTP/3 on %s: %w", conn.LocalAddr(), err)
	}
	_ = s.Close()
	return err
}

// certificateFiles are a certificate and its key, in PEM, as they are now. Whoever
// renews a certificate replaces the files; that is noticed within a minute, and at
// once at SIGHUP.
type certificateFiles struct {
	cert, key string
	current   atomic.Pointer[tls.Certificate]
	seen      [2]fileState // owned by watch
}

type fileState struct {
	size int64
	at   time.Time
}

// certificateLook is how often the files are looked at.
const certificateLook = time.Minute

func openCertificate(cert, key string) (*certificateFiles, error) {
	c := &certificateFiles{cert: cert, key: key}
	c.seen = c.states()
	return c, c.load()
}

func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

func (c *certificateFiles) load() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	c.current.Store(&pair)
	return nil
}

// renew loads the files. What cannot be used is said and changes nothing: the
// certificate that we have may be good for weeks.
func (c *certificateFiles) renew(log *slog.Logger) {
	if err := c.load(); err != nil {
		log.Error("the certificate that is in use stays", "err", err)
		return
	}
	log.Info("certificate was read again")
}

// watch loads the files whenever they have changed, until ctx is done.
func (c *certificateFiles) watch(ctx context.Context, log *slog.Logger) error {
	for {
		select {
		case <-time.After(certificateLook):
		case <-ctx.Done():
			return nil
		}
		if now := c.states(); now != c.seen {
			c.seen = now
			c.renew(log)
		}
	}
}

func (c *certificateFiles) states() (s [2]fileState) {
	for i, path := range []string{c.cert, c.key} {
		if info, err := os.Stat(path); err == nil {
			s[i] = fileState{info.Size(), info.ModTime()}
		}
	}
	return s
}
