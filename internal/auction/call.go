package auction

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// What an answer may be at most. Providers are strangers.
const (
	maxBody   = 2 << 20  // bytes, after decoding
	maxDepth  = 32       // of nested JSON objects and arrays
	maxHeader = 64 << 10 // bytes
	maxText   = 2 << 10  // bytes of an error's text
	maxLog    = 200      // bytes of that in the log
)

var (
	errLaunch     = errors.New("call not made")
	errCircuit    = fmt.Errorf("provider has failed too often: %w", errLaunch)
	errUnreadable = errors.New("answer not readable")
	errNoTime     = fmt.Errorf("no time left: %w", errLaunch)
)

// A statusError is an answer with a status that carries no bids. With 400, Prebid
// Server says in plain text what it did not like.
type statusError struct {
	code int
	text string // of a 400, at most maxText bytes
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("status %d", e.code)
	}
	line, _, _ := strings.Cut(e.text, "\n")
	return fmt.Sprintf("status %d: %.*q", e.code, maxLog, line)
}

// newClient makes the one client for all providers: no proxy of the environment,
// no cookies, no redirects (a bid request holds a reader's data and goes where the
// operator said, nowhere else), and a limit on everything.
func newClient(c Config) *http.Client {
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: time.Second}).DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:      true,
			DisableCompression:     true, // we decode ourselves, within bounds
			MaxConnsPerHost:        cmp.Or(c.MaxConnsPerHost, 256),
			MaxIdleConnsPerHost:    cmp.Or(c.MaxConnsPerHost, 256),
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    time.Second,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A reply is what one provider's call came to.
type reply struct {
	rank    int    // the provider's place in the configuration
	status  Status // empty: it was not asked; bid: it answered, even if nothing of it can win
	elapsed time.Duration
	nbr     int
	verdict
}

// ask calls the provider of that rank and judges what it answers: an answer that
// has not been judged within its time has not arrived in time. It returns soon
// after ctx has ended, and never panics: a fault in reading strangers' bytes costs
// one answer.
func (h *House) ask(ctx context.Context, r *Request, rank int) (rep reply) {
	p := &h.providers[rank]
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			h.metrics.panicked(h.log, partProvider, v, "provider", p.Name)
			rep = reply{status: StatusParse}
		}
		rep.rank, rep.elapsed = rank, time.Since(start)
	}()

	fair := p.isFair(ctx, start)
	if !p.circuit.allow(start, fair) {
		return reply{status: h.failed(ctx, p, errCircuit)}
	}
	learned := nothingLearned // also of a panic, which is ours
	defer func() { h.metrics.circuit(p.Name, p.circuit.report(time.Now(), learned)) }()

	answer, refused, err := h.negotiate(ctx, r, p)
	if answer != nil {
		rep.nbr = answer.NBR
		rep.verdict, err = h.judge(ctx, r, rank, answer)
	}
	if answer != nil || err != nil {
		learned = healthOf(ctx, err, fair)
	}
	if refused > 0 {
		if rep.nonBids == nil {
			rep.nonBids = make(map[NonBidReason]int)
		}
		rep.nonBids[ReasonImpRefused] += refused
	}
	switch {
	case err != nil:
		rep.status = h.failed(ctx, p, err)
	case answer != nil:
		rep.status = StatusBid
	}
	return rep
}

// failed is the status of a provider whose call has failed with err, which it logs.
func (h *House) failed(ctx context.Context, p *provider, err error) Status {
	s := status(ctx, err)
	h.log.LogAttrs(ctx, slog.LevelDebug, "provider failed", slog.String("provider", p.Name),
		slog.String("reason", string(s)), slog.Any("err", err))
	return s
}

// isFair reports whether a call that starts now, under ctx, has about the time that
// the operator grants p: at least three quarters of it. One that has less was asked
// for by a page in a hurry, and its time-out says more of the page than of p.
func (p *provider) isFair(ctx context.Context, start time.Time) bool {
	deadline, ok := ctx.Deadline()
	return !ok || deadline.Sub(start) >= p.Timeout/4*3
}

// healthOf is what a call that ended with err says of its provider. fair says
// whether the call had the provider's time: see [provider.isFair].
func healthOf(ctx context.Context, err error, fair bool) health {
	refused, ok := errors.AsType[*statusError](err)
	switch {
	case ok && refused.code != http.StatusTooManyRequests && refused.code < 500:
		return healthy // it has its wits about it
	case errors.Is(ctx.Err(), context.Canceled), errors.Is(err, errLaunch):
		return nothingLearned
	case !fair && err != nil && status(ctx, err) == StatusTimeout:
		return nothingLearned
	case err != nil:
		return failing
	}
	return healthy
}

// status is the only place where an error becomes a provider's status.
func status(ctx context.Context, err error) Status {
	if _, ok := errors.AsType[*statusError](err); ok {
		return StatusHTTPStatus
	}
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, errLaunch):
		return StatusLaunch
	case ctx.Err() != nil, ok && timeout.Timeout():
		return StatusTimeout
	case errors.Is(err, errUnreadable):
		return StatusParse
	}
	return StatusTransport
}

// negotiate calls p. Where single slots are why it refuses the request, it calls p
// once more without them if time remains: one stored request that is missing there
// must not cost the page its auction. It returns how many slots were left out.
func (h *House) negotiate(ctx context.Context, r *Request, p *provider) (answer *Answer, refused int, err error) {
	answer, err = h.call(ctx, r, p)
	refusal, ok := errors.AsType[*statusError](err)
	if !ok || refusal.code != http.StatusBadRequest {
		return answer, 0, err
	}
	blamed := p.Dialect.Blame(r, refusal.text)
	if len(blamed) == 0 {
		return nil, 0, err
	}
	answer, errAgain := h.call(ctx, r.without(blamed), p)
	if nothingLeft := answer == nil && errAgain == nil; nothingLeft || errors.Is(errAgain, errNoTime) {
		return nil, 0, err
	}
	h.log.LogAttrs(ctx, slog.LevelDebug, "provider refused slots", slog.String("provider", p.Name),
		slog.Int("slots", len(blamed)), slog.Any("err", err))
	return answer, len(blamed), errAgain
}

// call encodes, posts and decodes. A nil answer without an error means that p has
// no slot on this page.
func (h *House) call(ctx context.Context, r *Request, p *provider) (*Answer, error) {
	tmax := h.tmax(ctx, p)
	if tmax < time.Millisecond {
		return nil, errNoTime
	}
	c, err := p.Dialect.Encode(r, tmax)
	if err != nil {
		return nil, errors.Join(errLaunch, err)
	}
	if c == nil {
		return nil, nil
	}
	body := h.buffer()
	defer h.release(body)
	start := time.Now()
	found, err := h.post(p.network.traced(ctx), c, body)
	elapsed := time.Since(start)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return &Answer{}, nil
	}
	if tooDeep(body.Bytes()) {
		return nil, fmt.Errorf("nested deeper than %d: %w", maxDepth, errUnreadable)
	}
	answer, err := p.Dialect.Decode(r, body.Bytes())
	if err != nil {
		return nil, errors.Join(errUnreadable, err)
	}
	p.network.called(elapsed, answer.Took)
	return &answer, nil
}

// tmax is what p is told of its time: what remains of it, less the way there and
// back and what the operator takes off. However long the way seems to be, at least
// half of the time is p's.
func (h *House) tmax(ctx context.Context, p *provider) time.Duration {
	remaining := p.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		remaining = time.Until(deadline)
	}
	return remaining - min(p.network.estimate(), remaining/2) - h.slack
}

// post sends c and reads the body of a 200 into body. It reports false for a 204,
// OpenRTB's no bid.
func (h *House) post(ctx context.Context, c *Call, body *bytes.Buffer) (found bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(c.Body))
	if err != nil {
		return false, errors.Join(errLaunch, err)
	}
	if c.Header != nil {
		req.Header = c.Header.Clone()
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := h.client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }() // abandons what has not been read
	switch resp.StatusCode {
	case http.StatusOK:
		return true, readBody(body, resp)
	case http.StatusNoContent:
		return false, nil
	case http.StatusBadRequest:
		return false, &statusError{resp.StatusCode, errorText(resp)}
	}
	// Nobody waits for the text of another status: a bidder that has failed could
	// hold the auction with it, and that of a 101 does not end with ctx.
	return false, &statusError{code: resp.StatusCode}
}

// readBody decodes the body of resp into dst, at most maxBody bytes, however
// small the bytes were that they were made from.
func readBody(dst *bytes.Buffer, resp *http.Response) error {
	src, err := decoded(resp)
	if err != nil {
		return err
	}
	n, err := dst.ReadFrom(io.LimitReader(src, maxBody+1))
	switch {
	case n > maxBody:
		return fmt.Errorf("larger than %d bytes: %w", maxBody, errUnreadable)
	case err != nil && src != resp.Body:
		return errors.Join(errUnreadable, err)
	}
	return err
}

// decoded is the body of resp without its content coding.
func decoded(resp *http.Response) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	switch coding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip": // RFC 9110 section 8.4.1.3
		z, err := gzip.NewReader(resp.Body)
		if err != nil {
			return nil, errors.Join(errUnreadable, err)
		}
		return z, nil
	}
	return nil, fmt.Errorf("coding %.20q: %w", coding, errUnreadable)
}

// errorText is the beginning of an error's plain text, as far as it can be read.
func errorText(resp *http.Response) string {
	src, err := decoded(resp)
	if err != nil {
		return ""
	}
	b, _ := io.ReadAll(io.LimitReader(src, maxText))
	return string(b)
}

func (h *House) buffer() *bytes.Buffer {
	if b, ok := h.buffers.Get().(*bytes.Buffer); ok {
		return b
	}
	return new(bytes.Buffer)
}

// release keeps a buffer for the next answer, unless one large answer has made it
// larger than answers usually are.
func (h *House) release(b *bytes.Buffer) {
	if b.Cap() <= maxBody/8 {
		b.Reset()
		h.buffers.Put(b)
	}
}

// tooDeep reports whether JSON is nested deeper than maxDepth. Whether it is JSON
// at all is the dialect's to find out.
func tooDeep(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			i += stringLen(b[i:])
		}
	}
	return false
}

// stringLen is how far behind the opening quote of b the closing one is.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}
