package dashboard_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"

	"deckle/internal/catalog"
	"deckle/internal/dashboard"
	"deckle/internal/landing"
	"deckle/internal/obs"
	"deckle/internal/store/memory"
)

const (
	password = "correct horse battery"
	apiKey   = "the key of the tests"
)

// A world is the real handler over the real catalog, on a store in memory.
type world struct {
	t       testing.TB
	kv      *memory.KV
	blobs   *memory.Blobs
	catalog *catalog.Catalog
	config  dashboard.Config
	parts   dashboard.Parts
	handler *dashboard.Dashboard
	log     *bytes.Buffer
}

func newWorld(t testing.TB, edit func(*dashboard.Config)) *world {
	t.Helper()
	return newWorldOf(t, edit, catalog.Config{})
}

func newWorldOf(t testing.TB, edit func(*dashboard.Config), c catalog.Config) *world {
	t.Helper()
	w := &world{t: t, kv: memory.NewKV(), blobs: memory.NewBlobs(), log: &bytes.Buffer{}}
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelError}))
	c.Log = log
	w.catalog = catalog.New(w.kv, memory.NewKV(), c)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.catalog.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("catalog: %v", err)
		}
	})
	<-w.catalog.Loaded()

	dir := t.TempDir()
	w.config = dashboard.Config{
		PasswordFile: file(t, dir, "password", cheapHash(password)),
		APIKeysFile:  file(t, dir, "keys", keyLine("tests", apiKey)+keyLine("other", "another key")),
		Sites:        []string{"yuki-site", "kaze-site"},
		Ready: func() []obs.Check {
			return []obs.Check{
				{Part: "store", State: obs.OK, Note: "embedded, 12 MiB"},
				{Part: "template yuki-site", State: obs.Degraded, Note: "kept the last good version: line 12: unknown key \"flor\""},
			}
		},
	}
	w.parts = dashboard.Parts{
		Drafts:  memory.NewKV(),
		Landing: landing.New(landing.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
	}
	if edit != nil {
		edit(&w.config)
	}
	w.open()
	return w
}

// open makes the handler of the world, from the parts that it has by now.
func (w *world) open() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelError}))
	h, err := dashboard.New(w.config, w.catalog, w.blobs, w.parts, log)
	if err != nil {
		w.t.Fatal(err)
	}
	w.handler = h
}

func file(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func keyLine(name, secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return name + ":" + hex.EncodeToString(sum[:]) + "\n"
}

// cheapHash has the least parameters that are taken, so that tests do not spend
// their time on it.
func cheapHash(password string) string {
	salt := []byte("saltsalt")
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=19$m=19456,t=1,p=1$%s$%s", b64.EncodeToString(salt), b64.EncodeToString(argon2.IDKey([]byte(password), salt, 1, 19<<10, 1, 16)))
}

// put writes entities past the handler.
func (w *world) put(entities ...catalog.Entity) {
	w.t.Helper()
	for _, e := range entities {
		var revision uint64
		if r, err := w.catalog.Get(w.t.Context(), e.Kind(), e.EntityID()); err == nil {
			revision = r.Revision
		}
		r, err := w.catalog.Put(w.t.Context(), e, catalog.Write{By: "ana", Revision: revision})
		if err != nil {
			w.t.Fatalf("put %s %s: %v", e.Kind(), e.EntityID(), err)
		}
		if err := w.catalog.WaitFor(w.t.Context(), r.Revision); err != nil {
			w.t.Fatal(err)
		}
	}
}

// picture is a PNG of a landscape of sorts.
func picture(sky, hill color.RGBA) []byte {
	const w, h = 320, 240
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := sky
			c.R, c.G = c.R-uint8(y/8), c.G-uint8(y/10)
			if d := (x - 210) * (x - 210); y > 120+d/300 {
				c = hill
			}
			m.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// populate is a small publisher with two sites and something in every list.
func (w *world) populate() {
	w.t.Helper()
	asset, err := catalog.Rehost(w.t.Context(), w.blobs, picture(color.RGBA{220, 214, 226, 255}, color.RGBA{92, 110, 84, 255}))
	if err != nil {
		w.t.Fatal(err)
	}
	img := func(alt string) *catalog.Image { return &catalog.Image{Src: asset.Src, Alt: alt} }
	content := catalog.ContentTaxonomy().Categories()
	product := catalog.ProductTaxonomy().Categories()
	w.put(
		&catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"},
		&catalog.Site{ID: "yuki-site", Publisher: "yuki", Floors: catalog.Floors{Site: 1_500_000}, BlockedDomains: []string{"casino.example"}},
		&catalog.Site{ID: "kaze-site", Publisher: "yuki", Status: catalog.Warmup},
		&catalog.Advertiser{ID: "ryokan", Publisher: "yuki", Name: "Ryokan Association", DailyBudget: 250e6, TimeZone: "Asia/Tokyo"},
		&catalog.Advertiser{ID: "tea-house", Publisher: "yuki", Name: "Tea House Uji", DailyBudget: 12_500e6, TimeZone: "Asia/Tokyo", Status: catalog.Suspended},
		&catalog.Campaign{
			ID: "autumn", Advertiser: "ryokan", Name: "Autumn leaves", Categories: content[:2], ProductCategory: product[0],
			MaxCPM: 4_500_000, DailyBudget: 120e6, TotalBudget: 3000e6, Start: "2026-11-01", End: "2027-02-28", DogEar: true, LandingURL: "https://ryokan.example/autumn",
		},
		&catalog.Campaign{
			ID: "sencha", Advertiser: "tea-house", Name: "First harvest", Status: catalog.Paused, Categories: content[:1], ProductCategory: product[1],
			MaxCPM: 2_000_000, DailyBudget: 40e6, LandingURL: "https://tea.example/",
		},
		&catalog.Creative{ID: "ryokan-magazine-001", Campaign: "autumn", Name: "Nights under red maples", Content: catalog.Content{
			LandingURL: "https://ryokan.example/autumn",
			Pages: []catalog.Page{
				{Headline: "Nights under red maples", Sub: "Eleven houses in the hills above Kyoto", Image: img("Red maples over a stream"), Tag: "Travel", Background: "#f4efe6", Ink: "#2a2520", Accent: "#9c3b2e"},
				{Headline: "A bath with a view", Body: "Hot springs that face the valley, open until midnight, with tea served on the veranda.", Image: img("An open-air bath at dusk")},
				{Headline: "Stay two nights", Body: "The second one is half price until the end of February.", CTALabel: "See the houses"},
			},
		}},
		&catalog.Creative{ID: "ryokan-small", Campaign: "autumn", Name: "The small one", Content: catalog.Content{
			Pages: []catalog.Page{{Headline: "Red maples, quiet nights", CTALabel: "Book"}}, LandingURL: "https://ryokan.example/small",
		}},
	)
}

// ask sends a request to the handler, over plain HTTP to this machine.
func (w *world) ask(method, target, body string, header ...string) *answer {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, "http://localhost:8081"+target, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	return &answer{rec.Result(), rec.Body.String()}
}

type answer struct {
	*http.Response
	body string
}

// api sends a request with the key of the tests.
func (w *world) api(method, path, body string, header ...string) *answer {
	w.t.Helper()
	header = append([]string{"Authorization", "Bearer " + apiKey}, header...)
	if body != "" {
		header = append(header, "Content-Type", "application/json")
	}
	return w.ask(method, "/api/v1"+path, body, header...)
}

// serve puts the handler on loopback until the test ends.
func (w *world) serve() string {
	s := httptest.NewServer(w.handler)
	w.t.Cleanup(s.Close)
	return s.URL
}

type obsCheck = obs.Check

func parsePrefixes(texts ...string) (prefixes []netip.Prefix) {
	for _, text := range texts {
		prefixes = append(prefixes, netip.MustParsePrefix(text))
	}
	return prefixes
}
