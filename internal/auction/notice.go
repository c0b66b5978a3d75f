package auction

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"deckle/internal/publicnet"
)

// NotifierConfig configures a [Notifier]. The zero value is ready to use.
type NotifierConfig struct {
	// Timeout is how long one notice may take, redirects included. Defaults to 1 s.
	Timeout time.Duration

	// Queue is how many notices may wait. What comes on top is dropped and counted,
	// from the host with the most. Defaults to 1024.
	Queue int

	// Workers is how many notices are under way at once, a quarter of them to one host.
	// Defaults to 64.
	Workers int

	// Drain is how long waiting notices are still sent after Run's context has
	// ended. Defaults to 5 s.
	Drain time.Duration

	// Allow are networks that notices may go to though they are not public: for
	// demonstrations and tests. Bidders choose the addresses, so that every network
	// named here can be reached by every one of them.
	Allow []netip.Prefix

	// Resolver resolves the hosts of notices. Defaults to net.DefaultResolver.
	Resolver *net.Resolver
}

// A Notifier fires win notices (OpenRTB nurl), and loss notices (lurl) where they
// are wanted, in the background: each at most once, to public addresses only, and
// counted by what became of it.
type Notifier struct {
	config  NotifierConfig
	client  *http.Client
	metrics *Metrics
	log     *slog.Logger

	queue *noticeQueue
}

// A notice is a URL, or a loss that one is to be made of.
type notice struct {
	url  string
	loss *loss
}

// noticeOutcome is what became of a notice, as the metrics label it.
type noticeOutcome string

const (
	noticeOK         noticeOutcome = "ok"
	noticeHTTPStatus noticeOutcome = "http_status" // not 2xx
	noticeBlocked    noticeOutcome = "blocked"     // not a public address
	noticeTransport  noticeOutcome = "transport"   // no connection, reset, TLS
	noticeTimeout    noticeOutcome = "timeout"
	noticeDropped    noticeOutcome = "dropped" // the queue was full, the process ended, or firing it panicked
	noticeBadURL     noticeOutcome = "bad_url" // not http(s), credentials, too many redirects
)

const maxRedirects = 3

var errBadURL = errors.New("not a notice URL")

// NewNotifier makes a notifier. Notices wait until [Notifier.Run] is called.
func NewNotifier(c NotifierConfig, m *Metrics, log *slog.Logger) *Notifier {
	c.Timeout = cmp.Or(c.Timeout, time.Second)
	c.Queue = cmp.Or(c.Queue, 1024)
	c.Workers = cmp.Or(c.Workers, 64)
	c.Drain = cmp.Or(c.Drain, 5*time.Second)
	return &Notifier{
		config:  c,
		client:  newNoticeClient(c),
		metrics: m,
		log:     log,
		queue:   newNoticeQueue(c.Queue, max(1, c.Workers/4)),
	}
}

// newNoticeClient makes a client that goes to public addresses only. The check
// stands where a socket is about to be connected, after the name has been
// resolved and for every redirect: nothing can change the address in between.
//
// A connection is used for one notice. Over a kept one, net/http would repeat a
// GET whose connection breaks, and a notice is fired at most once.
func newNoticeClient(c NotifierConfig) *http.Client {
	dialer := &net.Dialer{
		Timeout:  c.Timeout,
		Resolver: c.Resolver,
		Control:  publicnet.Control(c.Allow),
	}
	return &http.Client{
		Timeout: c.Timeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			TLSHandshakeTimeout:    c.Timeout,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || !isNoticeURL(req.URL.String()) {
				return errBadURL
			}
			req.Header.Del("Referer") // a notice's URL holds a price
			return nil
		},
	}
}

// Selected fires the notices of a result whose winners have just been written into
// a page or returned to one: only then has anybody won or lost. It never blocks, and
// does nothing when it is called again for the same result.
func (n *Notifier) Selected(r *Result) {
	if r.notified.Swap(true) {
		return
	}
	for i := range r.Winners {
		if w := &r.Winners[i]; w.EdgeNURL && w.NURL != "" {
			n.enqueue(notice{url: w.NURL})
		}
	}
	for i := range r.losses {
		n.enqueue(notice{loss: &r.losses[i]})
	}
}

func (n *Notifier) enqueue(o notice) {
	for range n.queue.push(o) {
		n.metrics.notice(noticeDropped)
	}
}

// Run fires notices until ctx ends, then for at most Drain those that wait. End
// ctx after the servers have drained: what is selected later is dropped. Run may
// be called once, and returns nil.
func (n *Notifier) Run(ctx context.Context) error {
	fire, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var workers sync.WaitGroup
	for range n.config.Workers {
		workers.Go(func() {
			for o, ok := n.queue.pop(); ok; o, ok = n.queue.pop() {
				n.metrics.notice(n.survive(fire, o))
				n.queue.done(o)
			}
		})
	}
	<-ctx.Done()
	n.queue.close()
	timer := time.AfterFunc(n.config.Drain, cancel)
	defer timer.Stop()
	workers.Wait()
	return nil
}

// survive fires one notice. It never panics: the worker has others to fire.
func (n *Notifier) survive(ctx context.Context, o notice) (outcome noticeOutcome) {
	defer func() {
		if v := recover(); v != nil {
			n.metrics.panicked(n.log, partNotice, v)
			outcome = noticeDropped
		}
	}()
	if o.loss != nil {
		url, ok := o.loss.url()
		if !ok {
			return noticeBadURL
		}
		o.url = url
	}
	return n.fire(ctx, o.url)
}

// fire sends one notice.
func (n *Notifier) fire(ctx context.Context, url string) noticeOutcome {
	if ctx.Err() != nil {
		return noticeDropped
	}
	if !isNoticeURL(url) {
		return noticeBadURL
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return noticeBadURL
	}
	req.Header.Set("User-Agent", "deckle")
	resp, err := n.client.Do(req)
	if err != nil {
		n.log.LogAttrs(ctx, slog.LevelDebug, "notice failed", slog.Any("err", errors.Unwrap(err))) // without its URL
		return failedNotice(err)
	}
	_ = resp.Body.Close() // what it says does not matter
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return noticeHTTPStatus
	}
	return noticeOK
}

// failedNotice is the only place where an error becomes a notice's outcome.
func failedNotice(err error) noticeOutcome {
	switch timeout, ok := errors.AsType[net.Error](err); {
	case errors.Is(err, publicnet.ErrNotPublic):
		return noticeBlocked
	case errors.Is(err, errBadURL):
		return noticeBadURL
	case errors.Is(err, context.Canceled): // the process is ending
		return noticeDropped
	case ok && timeout.Timeout():
		return noticeTimeout
	}
	return noticeTransport
}
