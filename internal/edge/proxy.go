package edge

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A siteProxy is a site and the way to its origin.
type siteProxy struct {
	*Site
	edge *Edge

	lastFailure atomic.Int64 // when a failure of the origin was last logged, in ns since 1970

	// plain passes on whatever has no hole.
	plain *httputil.ReverseProxy
}

func newSiteProxy(s *Site, e *Edge) *siteProxy {
	p := &siteProxy{Site: s, edge: e}
	p.plain = &httputil.ReverseProxy{
		Rewrite:        p.toOrigin,
		ModifyResponse: p.plainAnswer,
		ErrorHandler:   p.failed,
		Transport:      e.transport,
		BufferPool:     &bufferPool{},
		ErrorLog:       slog.NewLogLogger(e.log.Handler(), slog.LevelDebug),
	}
	return p
}

// newTransport is the one way to all origins. It decodes nothing by itself, so
// that what we do not touch stays as it came.
func newTransport(dial func(context.Context, string, string) (net.Conn, error)) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  10 * time.Minute, // a slow origin is the site's matter; readers leave earlier
		MaxResponseHeaderBytes: 256 << 10,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// hopByHop are the headers of one connection (RFC 9110 section 7.6.1), beside
// those that Connection names.
var hopByHop = [...]string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// toOrigin turns a reader's request into the origin's: the request line byte for
// byte, the Host of the configuration, and who asked.
func (s *siteProxy) toOrigin(pr *httputil.ProxyRequest) {
	pr.Out.URL = target(s.Origin, pr.In.RequestURI)
	pr.Out.Host = s.HostHeader
	if s.HostHeader == "" {
		pr.Out.Host = s.edge.config.TrustedProxies.Host(pr.In)
	}
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		pr.Out.Header.Del(name) // what a stranger wrote there
	}
	pr.Out.Header["X-Forwarded-For"] = []string{s.edge.config.TrustedProxies.forwardedFor(pr.In)}
	pr.Out.Header["X-Forwarded-Host"] = []string{s.edge.config.TrustedProxies.Host(pr.In)}
	pr.Out.Header["X-Forwarded-Proto"] = []string{s.edge.config.TrustedProxies.Scheme(pr.In)}
	if _, ok := pr.In.Header["User-Agent"]; !ok {
		pr.Out.Header["User-Agent"] = nil // else net/http names itself
	}
	if !isWebSocket(pr.In.Header) {
		// Another protocol would take the connection past everything here.
		pr.Out.Header.Del("Connection")
		pr.Out.Header.Del("Upgrade")
	}
	if v, _ := pr.In.Context().Value(visitKey{}).(*visit); v != nil && v.private() {
		askForAll(pr.Out.Header)
	}
}

func isWebSocket(h http.Header) bool { return strings.EqualFold(h.Get("Upgrade"), "websocket") }

// target is where requestURI is at the origin. Opaque keeps its bytes: "//",
// "%2F" and ".." mean what they mean to the origin.
func target(origin *url.URL, requestURI string) *url.URL {
	path, query, hasQuery := strings.Cut(pathAndQuery(requestURI), "?")
	u := &url.URL{Scheme: origin.Scheme, Host: origin.Host, RawQuery: query, ForceQuery: hasQuery}
	if !strings.HasPrefix(path, "//") {
		u.Opaque = path
		return u
	}
	// net/url takes an Opaque that begins with "//" for an authority.
	u.RawPath = path
	u.Path, _ = url.PathUnescape(path)
	return u
}

// pathAndQuery takes the authority off a request target in absolute form
// (RFC 9112 section 3.2.2); "" for a target of no form.
func pathAndQuery(requestURI string) string {
	if strings.HasPrefix(requestURI, "/") || requestURI == "*" {
		return requestURI
	}
	_, rest, ok := strings.Cut(requestURI, "://")
	if !ok || rest == "" {
		return ""
	}
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return "/"
	case rest[i] == '?':
		return "/" + rest[i:]
	}
	return rest[i:]
}

// fetch asks the origin for a page that something may go into: without what could
// bring less than the whole page, and in a coding that we can read.
// What the origin says before its answer goes on to w.
func (s *siteProxy) fetch(w http.ResponseWriter, r *http.Request) (*http.Response, error) {
	hints := &earlyHints{w: w}
	defer hints.end()
	out := r.Clone(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: hints.pass}))
	out.RequestURI, out.Close = "", false
	if r.ContentLength == 0 {
		out.Body = nil
	}
	removeHopByHop(out.Header)
	s.toOrigin(&httputil.ProxyRequest{In: r, Out: out})
	askForAll(out.Header)
	out.Header.Set("Accept-Encoding", readableCodings(r.Header["Accept-Encoding"]))

	resp, err := s.edge.transport.RoundTrip(out)
	if err == nil && out.Body == nil && (resp.StatusCode == http.StatusNotModified || resp.StatusCode == http.StatusPartialContent) {
		// Nobody asked for it: an origin's cache that still knows an older question.
		_ = resp.Body.Close()
		resp, err = s.edge.transport.RoundTrip(out)
	}
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return nil, errSwitched
	}
	return resp, err
}

// errSwitched is what an origin did that goes over to another protocol unasked: its
// connection would be the reader's.
var errSwitched = errors.New("malformed answer: it switches protocols, and nobody asked for that")

// earlyHints pass the informational answers of an origin on (RFC 9110 section 15.2):
// 103 lets a browser load what a page will need while it is still being made (RFC
// 8297). They come from the transport's goroutine, while nobody else uses w.
type earlyHints struct {
	w http.ResponseWriter

	mu    sync.Mutex
	ended bool // the answer proper has come
}

func (e *earlyHints) pass(status int, header textproto.MIMEHeader) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return nil
	}
	hints := http.Header(header).Clone()
	removeHopByHop(hints)
	hints.Del("Alt-Svc")
	h := e.w.Header()
	own := h.Clone()
	maps.Copy(h, hints)
	e.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, own)
	return nil
}

func (e *earlyHints) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
}

// A plainWriter corrects what net/http's proxy does with informational answers: it
// passes them on with what is not for the reader, and forgets what was set before.
type plainWriter struct {
	http.ResponseWriter
	own http.Header // was set before
}

func newPlainWriter(w http.ResponseWriter) plainWriter {
	w.Header()["Content-Type"] = nil // where the origin sends none, net/http would guess one
	return plainWriter{w, w.Header().Clone()}
}

func (w plainWriter) WriteHeader(status int) {
	h := w.Header()
	if status < 200 && status != http.StatusSwitchingProtocols {
		h.Del("Alt-Svc")
	} else {
		for name, values := range w.own {
			if _, ok := h[name]; !ok {
				h[name] = values
			}
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController what is below.
func (w plainWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// askForAll makes a request one for the whole page: what would be answered with less
// was asked of a page that is not the one we deliver.
func askForAll(h http.Header) {
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "Range", "If-Range"} {
		h.Del(name)
	}
}

// passOn gives the reader a fetched answer as it came.
func (s *siteProxy) passOn(w http.ResponseWriter, resp *http.Response) {
	s.toPublic(resp)
	removeHopByHop(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.Header()["Content-Type"] = resp.Header["Content-Type"] // none stays none: net/http would guess one
	announced := len(resp.Trailer)
	for name := range resp.Trailer {
		w.Header().Add("Trailer", name)
	}
	w.WriteHeader(resp.StatusCode)
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	if err := copyFlushing(w, resp, *buf); err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range resp.Trailer {
		if len(resp.Trailer) != announced {
			name = http.TrailerPrefix + name
		}
		w.Header()[name] = values
	}
}

// copyFlushing copies a body, and flushes after each part of one whose length is
// not known: its origin may be writing it for somebody who waits.
func copyFlushing(w http.ResponseWriter, resp *http.Response, buf []byte) error {
	if resp.ContentLength >= 0 {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{resp.Body}, buf)
		return err
	}
	flush := http.NewResponseController(w).Flush
	for {
		n, err := resp.Body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
			if err := flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// failed answers for an origin that did not.
func (s *siteProxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		panic(http.ErrAbortHandler) // the reader has gone; nothing may look like an answer
	}
	status, text := http.StatusBadGateway, "The site did not answer."
	if netErr, ok := errors.AsType[net.Error](err); ok && netErr.Timeout() {
		status, text = http.StatusGatewayTimeout, "The site took too long to answer."
	}
	s.edge.metrics.originErrors.WithLabelValues(s.ID).Inc()
	s.logFailure(err)
	refuse(w, status, text)
}

// logFailure says that the origin has failed, at most every ten seconds: the
// metric counts. An error's own text may quote what the origin wrote, which may be
// a reader's; its kind is enough.
func (s *siteProxy) logFailure(err error) {
	const quiet = 10 * time.Second
	now, last := time.Now().UnixNano(), s.lastFailure.Load()
	if now-last < int64(quiet) || !s.lastFailure.CompareAndSwap(last, now) {
		return
	}
	s.edge.log.Warn("origin failed", "site", s.ID, "reason", failureKind(err))
}

func failureKind(err error) string {
	netErr, isNet := errors.AsType[net.Error](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isDNS:
		return "name not resolved"
	case isNet && netErr.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case strings.Contains(err.Error(), "malformed"):
		return "malformed answer"
	}
	return "transport"
}

// refuse answers a reader in our own words, for nobody to keep.
func refuse(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

type visitKey struct{}

func withVisit(r *http.Request, v *visit) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

// plainAnswer makes the header of an answer without a hole true: the frame of a
// page with slots, and its HEAD, are as private as the page. Where the page is the
// same for everybody its HEAD is, too; and whatever else it came as, without what
// would have gone in, is nobody's to keep.
func (s *siteProxy) plainAnswer(resp *http.Response) error {
	s.toPublic(resp)
	v, _ := resp.Request.Context().Value(visitKey{}).(*visit)
	if v == nil || !v.private() && !v.shared {
		return nil
	}
	doc, why := s.injectable(resp, v.needs())
	if why != "" {
		return nil
	}
	isHead := resp.Request.Method == http.MethodHead
	if v.shared && isHead {
		makeShared(resp.Header)
	} else {
		s.makePrivate(resp.Header)
	}
	if isHead {
		removeUntrue(resp.Header) // of the page, which is longer than the origin's
		doc.scripts.apply(resp.Header)
	}
	return nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

// bufferPool lends the proxy its copy buffers.
type bufferPool struct{}

func (bufferPool) Get() []byte  { return *buffers.Get().(*[]byte) }
func (bufferPool) Put(b []byte) { buffers.Put(&b) }
