// Package sim is the world outside Deckle, on loopback and in one process: a
// publisher's site, a Prebid Server with its bidders, Amazon Publisher Services, an
// ad server with its tag library, and the faults that all of them have in real
// life.
//
// It serves the demo and the tests of every package above the ones it stands in
// for. Nothing in it knows Deckle: its parts speak HTTP, OpenRTB and the
// public interface of Google Publisher Tag, and unmodified Prebid.js runs against
// them as well.
//
// Every part is an [http.Handler] that may be used alone. All methods may be
// called concurrently.
package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options configures a [World]. The zero value is ready to use: no latency,
// ephemeral ports.
type Options struct {
	Latency Latency

	// Publisher, Prebid and AdServer configure the parts. Their own Latency
	// fields, where they are zero, are taken from Latency above.
	Publisher PublisherOptions
	Prebid    PrebidOptions
	APS       APSOptions
	AdServer  AdServerOptions
}

// A World is a publisher, a Prebid Server, an APS and an ad server that listen on
// loopback until it is closed.
type World struct {
	Publisher *Publisher
	Prebid    *PrebidServer
	APS       *APS
	AdServer  *AdServer

	// Where they are: "http://127.0.0.1:port", without a slash at the end.
	PublisherURL, PrebidURL, APSURL, AdServerURL string

	servers []*http.Server
	serving sync.WaitGroup
	stop    context.CancelFunc // ends handlers that have taken over their connection
}

// GPTURL is where the ad server has its tag library.
func (w *World) GPTURL() string { return w.AdServerURL + gptPath }

// Start opens the world's three listeners. It returns when all of them accept
// connections. The world lives until Close is called or ctx is done.
func Start(ctx context.Context, o Options) (*World, error) {
	o.Publisher.Latency = firstPositive(o.Publisher.Latency, o.Latency.Origin)
	o.Prebid.Latency = firstPositive(o.Prebid.Latency, o.Latency.Prebid)
	o.APS.Latency = firstPositive(o.APS.Latency, o.Latency.Prebid)
	o.AdServer.Latency = firstPositive(o.AdServer.Latency, o.Latency.GPT)

	w := &World{}
	ctx, w.stop = context.WithCancel(ctx)
	w.AdServer = NewAdServer(o.AdServer)
	w.Prebid = NewPrebidServer(o.Prebid)
	w.APS = NewAPS(o.APS)

	var err, errAPS, errAd, errPub error
	w.PrebidURL, err = w.serve(ctx, w.Prebid)
	w.APSURL, errAPS = w.serve(ctx, w.APS)
	w.AdServerURL, errAd = w.serve(ctx, w.AdServer)
	if o.Publisher.GPTURL == "" {
		o.Publisher.GPTURL = w.GPTURL()
	}
	w.Publisher = NewPublisher(o.Publisher)
	w.PublisherURL, errPub = w.serve(ctx, w.Publisher)
	if err := errors.Join(err, errAPS, errAd, errPub); err != nil {
		return nil, errors.Join(fmt.Errorf("start the world: %w", err), w.Close())
	}
	context.AfterFunc(ctx, func() { _ = w.Close() })
	return w, nil
}

// serve answers with h on a loopback listener of its own and returns its URL.
func (w *World) serve(ctx context.Context, h http.Handler) (string, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	// No write timeout: slowness is what some of the faults are about. Handlers end
	// when the client goes away or the world is closed.
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	w.servers = append(w.servers, s)
	w.serving.Go(func() { _ = s.Serve(ln) }) // ends with Close; its error says no more than that
	return "http://" + ln.Addr().String(), nil
}

// Close cuts every connection and frees the ports. It may be called twice.
func (w *World) Close() error {
	w.stop()
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	w.serving.Wait()
	return errors.Join(errs...)
}

func firstPositive(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d > 0 {
			return d
		}
	}
	return 0
}
