package edge_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/consent"
	"deckle/internal/edge"
	"deckle/internal/prebid"
	"deckle/internal/template"
)

// BenchmarkPage is one page of 100 kB over loopback, side by side: straight from
// the origin, through net/http's own proxy, and through the edge. All of client,
// edge, origin and bidder are in this process, so that only ratios mean anything.
func BenchmarkPage(b *testing.B) {
	body := []byte("<!doctype html><html><head><title>t</title></head><body>" + strings.Repeat("<p>Some text of a page, with <b>tags</b>.</p>\n", 2200) + "</body></html>")
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(body)
	}))
	defer origin.Close()
	bidder := httptest.NewServer(bids(0, "2.5"))
	defer bidder.Close()
	originURL, err := url.Parse(origin.URL)
	if err != nil {
		b.Fatal(err)
	}
	stock := httptest.NewServer(httputil.NewSingleHostReverseProxy(originURL))
	defer stock.Close()
	deckleURL := benchmarkEdge(b, originURL, bidder.URL)

	for _, c := range []struct{ name, url, agent string }{
		{"origin", origin.URL + "/x", "reader"},
		{"ReverseProxy", stock.URL + "/x", "reader"},
		{"plain", deckleURL + "/plain", "reader"},
		{"slots", deckleURL + "/x", "bot"},
		{"slots+bids", deckleURL + "/x", "reader"},
	} {
		b.Run(c.name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}}
			defer client.CloseIdleConnections()
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				fetchPage(b, client, c.url, c.agent, len(body))
			}
		})
	}
}

func fetchPage(b *testing.B, client *http.Client, url, agent string, least int) {
	req, err := http.NewRequest("GET", url, nil)
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", "text/html")
	resp, err := client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(least) {
		b.Fatal(n, err)
	}
}

// benchmarkEdge serves the edge on loopback and returns its URL.
func benchmarkEdge(b *testing.B, origin *url.URL, bidder string) string {
	dense, _ := deckle.Granularity("dense")
	tmpl, err := template.New(template.Settings{
		Enabled: true, AuctionTimeout: time.Second, HeadHold: time.Second, Buckets: dense, TargetingKeys: []string{"hb_pb", "hb_bidder", "hb_adid"},
	}, []deckle.Slot{slot("top")}, []template.Patterns{{Include: []string{"/x"}}})
	if err != nil {
		b.Fatal(err)
	}
	log, metrics := slog.New(slog.DiscardHandler), auction.NewMetrics()
	house := auction.New(auction.Config{Providers: []auction.Provider{{
		Name: "prebid", Dialect: prebid.New(prebid.Config{ServerURL: bidder}),
	}}}, metrics, log)
	e := edge.New(edge.Config{
		Sites: []edge.Site{{
			ID: "bench", Hosts: []string{"127.0.0.1"}, Origin: origin, Enabled: true, Template: func() *template.Template { return tmpl },
		}},
		Consent: consent.Config{UnknownPlace: consent.PlaceOther}, AuctionEnabled: true,
	}, edge.Own{}, house, auction.NewNotifier(auction.NotifierConfig{}, metrics, log), log)
	s := httptest.NewServer(e)
	b.Cleanup(func() {
		s.Close()
		e.Close()
		house.Close()
	})
	return s.URL
}
