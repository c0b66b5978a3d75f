package desk_test

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckle/internal/catalog"
	"deckle/internal/sim/desk"
	"deckle/internal/store/memory"
)

// The desk's document is one that a person could import: nothing of it is refused,
// importing it twice changes nothing, and what is approved can be shown.
func TestDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		cat := catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{Sites: []catalog.SiteFacts{{ID: desk.Site, Currency: "USD"}}})
		go func() {
			if err := cat.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		<-cat.Loaded()

		blobs := memory.NewBlobs()
		document, err := desk.Document(ctx, blobs)
		if err != nil {
			t.Fatal(err)
		}
		diff, err := cat.Import(document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cat.Apply(ctx, diff, "the desk"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // of the bubble: the snapshot has come after
		again, err := cat.Import(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range again.Steps {
			t.Errorf("a second import would %s %s", step.What, step.Key)
		}
		check(t, cat.Snapshot())
		pictures(t, blobs, document)
	})
}

func check(t *testing.T, snapshot *catalog.Snapshot) {
	t.Helper()
	if pool := snapshot.Lookup(desk.Site, "653"); pool.Len() < 5 {
		t.Errorf("a page about travel has %d candidates, want at least 5", pool.Len())
	}
	var waiting []string
	for _, w := range snapshot.Queue(desk.Site, time.Now()) {
		waiting = append(waiting, w.Creative)
	}
	if got := strings.Join(waiting, " "); got != "saltline-winter teasel-flask" {
		t.Errorf("%q wait for approval", got)
	}
}

// Every picture is well-formed, and every magazine has one on its cover.
func pictures(t *testing.T, blobs *memory.Blobs, document *catalog.Document) {
	t.Helper()
	for _, c := range document.Creatives {
		if c.Pages[0].Image == nil {
			t.Errorf("%s has no picture on its cover", c.ID)
			continue
		}
		blob, err := blobs.Get(t.Context(), strings.TrimPrefix(c.Pages[0].Image.Src, catalog.AssetPath))
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(string(blob.Data)))
		for err == nil {
			_, err = decoder.Token()
		}
		if !errors.Is(err, io.EOF) {
			t.Errorf("picture of %s: %v", c.ID, err)
		}
	}
}
