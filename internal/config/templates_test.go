package config

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A newsroom is one site with its template file, and Templates that follow it in
// the time of a synctest bubble.
type newsroom struct {
	t         *testing.T
	config    *Config
	file      string
	events    chan fsnotify.Event
	templates *Templates
	log       strings.Builder // owned by Templates while it runs
	stop      func()
}

// openNewsroom writes the template file, unless it is "", and starts.
func openNewsroom(t *testing.T, text string) *newsroom {
	t.Helper()
	folder := t.TempDir()
	n := &newsroom{
		t:      t,
		file:   filepath.Join(folder, "creative-opportunities.toml"),
		events: make(chan fsnotify.Event),
	}
	n.config = &Config{
		Sites:   []Site{{ID: "a", Templates: n.file, AdServer: "gam"}},
		Auction: Auction{Timeout: time.Second},
		Store:   Store{DataDir: filepath.Join(folder, "data")},
	}
	if text != "" {
		n.write(text)
	}
	n.start()
	return n
}

// start starts Templates, as a new process would.
func (n *newsroom) start() {
	n.templates = Watch(n.config, slog.New(slog.NewTextHandler(&n.log, nil)))
	ctx, cancel := context.WithCancel(n.t.Context())
	var running sync.WaitGroup
	running.Go(func() { n.templates.follow(ctx, n.events, nil, func() {}) })
	n.stop = func() {
		cancel()
		running.Wait()
	}
}

// write writes the file in place, as an editor does that truncates first.
func (n *newsroom) write(text string) {
	n.t.Helper()
	if err := os.WriteFile(n.file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// save writes the file and lets the system tell of it.
func (n *newsroom) save(text string) {
	n.t.Helper()
	n.write(text)
	n.events <- fsnotify.Event{Name: n.file, Op: fsnotify.Write}
}

func (n *newsroom) remove() {
	n.t.Helper()
	if err := os.Remove(n.file); err != nil {
		n.t.Fatal(err)
	}
	n.events <- fsnotify.Event{Name: n.file, Op: fsnotify.Remove}
}

// expect lets time pass and compares the state and the first slot that pages get
// then; "" = no ads.
func (n *newsroom) expect(after time.Duration, status TemplateStatus, slot string) {
	n.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	got := ""
	if t := n.templates.For("a"); t != nil {
		got = string(t.Slots[0].ID)
	}
	if state := n.templates.States()[0]; state.Status != status || got != slot {
		n.t.Errorf("after %v: %s with slot %q, want %s with %q; problems: %v", after, state.Status, got, status, slot, state.Problems)
	}
}

// withSlot is a valid template file with one slot.
func withSlot(id string) string {
	return fmt.Sprintf("[creative_opportunities]\ngam_network_id = \"1\"\n[[slot]]\nid = %q\npage_patterns = [\"/\"]\nformats = [{ width = 1, height = 1 }]\n", id)
}

const ms = time.Millisecond

func TestAChangeCountsWhenItHasStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.expect(0, TemplateOK, "one")
		n.save(withSlot("two"))
		n.expect(499*ms, TemplateOK, "one")
		n.expect(1*ms, TemplateOK, "two")
	})
}

func TestAHalfWrittenFileNeverCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		whole := withSlot("two") + strings.Replace(withSlot("three"), "[creative_opportunities]\ngam_network_id = \"1\"\n", "", 1)
		for _, part := range []int{0, len("[creative_opportunities]\n"), len(withSlot("two"))} {
			n.save(whole[:part]) // the second would switch ads off, the third be valid with one slot
			n.expect(499*ms, TemplateOK, "one")
		}
		n.save(whole)
		n.expect(499*ms, TemplateOK, "one")
		n.expect(1*ms, TemplateOK, "two")
		if slots := n.templates.States()[0].Slots; slots != 2 {
			t.Errorf("%d slots, want the whole file's 2", slots)
		}
	})
}

func TestAFileThatIsWrittenDuringTheStartIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one")) // its time is not in the past of the bubble's clock
		n.stop()
		n.write(withSlot("one")[:len("[creative_opportunities]\n")])
		writer := time.AfterFunc(300*ms, func() { n.write(withSlot("two")) })
		defer writer.Stop()
		began := time.Now()
		n.start()
		defer n.stop()
		n.expect(0, TemplateOK, "two")
		if waited := time.Since(began); waited != 1000*ms { // it looks after 500 ms, and sees a new file
			t.Errorf("the start took %v", waited)
		}
	})
}

func TestTheStartDoesNotWaitForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		n.stop()
		ctx, cancel := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() {
			for text := withSlot("two"); ctx.Err() == nil; text += "#" {
				n.write(text)
				time.Sleep(400 * ms)
			}
		})
		began := time.Now()
		n.start()
		defer n.stop()
		if waited := time.Since(began); waited > startTime {
			t.Errorf("the start took %v", waited)
		}
		n.expect(0, TemplateLastGood, "one")
		cancel()
		writing.Wait()
		n.expect(pollTime+settleTime, TemplateOK, "two")
	})
}

func TestAnInvalidFileLeavesTheLastGoodVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		n.save(withSlot("a slot"))
		n.expect(500*ms, TemplateLastGood, "one")
		if p := n.templates.States()[0].Problems; len(p) != 1 || p[0].Key != "slot[0].id" || p[0].Line != 4 {
			t.Errorf("problems: %v", p)
		}
		n.stop()
		n.start() // a restart finds it on the disk
		n.expect(0, TemplateLastGood, "one")
		n.save(withSlot("two"))
		n.expect(500*ms, TemplateOK, "two")
		n.stop()
		if log := n.log.String(); strings.Count(log, "its last good version is in use") != 2 || !strings.Contains(log, "slot[0].id") {
			t.Errorf("not said loudly, once for each process:\n%s", log)
		}
	})
}

func TestWithoutAGoodVersionAnInvalidFileMeansNoAds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, "[creative_opportunities]\nenabled = 1\n")
		defer n.stop()
		n.expect(0, TemplateInvalid, "")
		n.save(withSlot("one"))
		n.expect(500*ms, TemplateOK, "one")
	})
}

func TestALastGoodVersionIsProvenByItsHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		n.stop()
		kept := filepath.Join(n.config.Store.DataDir, "templates", "a.toml")
		text := readTestdata(t, kept)
		if err := os.WriteFile(kept, []byte(strings.Replace(string(text), "one", "two", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		n.write("no template")
		n.start()
		defer n.stop()
		n.expect(0, TemplateInvalid, "")
	})
}

func TestAMissingFileMeansNoAds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, "")
		defer n.stop()
		n.expect(0, TemplateMissing, "")
		n.save(withSlot("one"))
		n.expect(500*ms, TemplateOK, "one")
		n.remove()
		n.expect(4999*ms, TemplateOK, "one")
		n.expect(1*ms, TemplateMissing, "")
		n.save(withSlot("one"))
		n.expect(500*ms, TemplateOK, "one")
	})
}

func TestAFileThatComesBackWasNeverMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.remove()
		n.expect(4*time.Second, TemplateOK, "one")
		n.save(withSlot("two"))
		n.expect(499*ms, TemplateOK, "one")
		n.expect(1*ms, TemplateOK, "two")
		n.expect(10*time.Second, TemplateOK, "two")
	})
}

func TestAFileMaySwitchAdsOff(t *testing.T) {
	off := strings.Replace(withSlot("one"), "[creative_opportunities]\n", "[creative_opportunities]\nenabled = false\n", 1)
	for name, text := range map[string]string{"enabled": off, "no slots": "[creative_opportunities]\n"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := openNewsroom(t, withSlot("one"))
				defer n.stop()
				n.save(text)
				n.expect(500*ms, TemplateDisabled, "")
				n.save("no template") // the last good version is the one that is off
				n.expect(500*ms, TemplateLastGood, "")
				n.save(withSlot("two"))
				n.expect(500*ms, TemplateOK, "two")
			})
		})
	}
}

// TestAChangeIsFoundWithoutEvents is a network file system, or a file behind a
// symbolic link.
func TestAChangeIsFoundWithoutEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.write(withSlot("other"))
		n.expect(pollTime+settleTime, TemplateOK, "other")
	})
}

func TestReloadReadsAFileThatLooksTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.expect(0, TemplateOK, "one")
		before, err := os.Stat(n.file)
		if err != nil {
			t.Fatal(err)
		}
		n.write(withSlot("two"))
		if err := os.Chtimes(n.file, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		n.expect(time.Minute, TemplateOK, "one")
		n.templates.Reload()
		n.templates.Reload() // never blocks
		n.expect(500*ms, TemplateOK, "two")
	})
}

func TestAFileThatCannotBeReadLeavesTheLastGoodVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.remove()
		if err := os.Mkdir(n.file, 0o700); err != nil {
			t.Fatal(err)
		}
		n.events <- fsnotify.Event{Name: n.file, Op: fsnotify.Create}
		n.expect(500*ms, TemplateLastGood, "one")
		n.remove()
		n.save(withSlot("one")) // the same content as before
		n.expect(500*ms, TemplateOK, "one")
	})
}

// TestRealFiles changes files as editors, deployments and Kubernetes do, and
// lets the system tell of it, in real time.
func TestRealFiles(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(t *testing.T, file string, text []byte){
		"truncate and write": func(t *testing.T, file string, text []byte) {
			f, err := os.Create(file)
			must(t, err)
			for _, b := range text {
				_, err := f.Write([]byte{b})
				must(t, err)
			}
			must(t, f.Close())
		},
		"atomic rename": func(t *testing.T, file string, text []byte) {
			must(t, os.WriteFile(file+".tmp", text, 0o600))
			must(t, os.Rename(file+".tmp", file))
		},
		"delete and write": func(t *testing.T, file string, text []byte) {
			must(t, os.Remove(file))
			must(t, os.WriteFile(file, text, 0o600))
		},
		"mounted ConfigMap": func(t *testing.T, file string, text []byte) {
			folder := filepath.Dir(file)
			version := func(name string, text []byte) { // file → ..data/file, ..data → a folder for each version
				must(t, os.Mkdir(filepath.Join(folder, name), 0o700))
				must(t, os.WriteFile(filepath.Join(folder, name, filepath.Base(file)), text, 0o600))
				must(t, os.Symlink(name, filepath.Join(folder, "..tmp")))
				must(t, os.Rename(filepath.Join(folder, "..tmp"), filepath.Join(folder, "..data")))
			}
			version("..1", []byte(withSlot("one")))
			must(t, os.Remove(file))
			must(t, os.Symlink(filepath.Join("..data", filepath.Base(file)), file))
			version("..2", text)
		},
		"folder replaced": func(t *testing.T, file string, text []byte) {
			folder := filepath.Dir(file)
			must(t, os.Rename(folder, folder+".old"))
			must(t, os.Mkdir(folder, 0o700))
			must(t, os.WriteFile(file, text, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "site", "creative-opportunities.toml")
			must(t, os.Mkdir(filepath.Dir(file), 0o700))
			must(t, os.WriteFile(file, []byte(withSlot("one")), 0o600))
			must(t, os.Chtimes(file, noon, noon)) // old enough not to be waited for
			templates := Watch(&Config{Sites: []Site{{ID: "a", Templates: file, AdServer: "gam"}}, Auction: Auction{Timeout: time.Second}, Store: Store{DataDir: t.TempDir()}}, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer running.Wait()
			defer cancel()
			running.Go(func() {
				if err := templates.Run(ctx); err != nil {
					t.Error(err)
				}
			})
			change(t, file, []byte(withSlot("two")))
			tick := time.NewTicker(10 * ms)
			defer tick.Stop()
			for limit := time.After(20 * time.Second); ; {
				if current := templates.For("a"); current == nil || current.Slots[0].ID == "two" {
					if current == nil {
						t.Error("ads went off meanwhile")
					}
					return
				}
				select {
				case <-tick.C:
				case <-limit:
					t.Fatalf("still %+v", templates.States()[0])
				}
			}
		})
	}
}

func TestUnknownSitesHaveNoTemplate(t *testing.T) {
	if got := Watch(&Config{}, slog.New(slog.DiscardHandler)).For("a"); got != nil {
		t.Errorf("For = %v", got)
	}
}

func TestMetricsOfTemplates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNewsroom(t, withSlot("one"))
		defer n.stop()
		n.save("no template")
		n.expect(500*ms, TemplateLastGood, "one")
		registry := prometheus.NewPedanticRegistry()
		if err := n.templates.Metrics().Register(registry); err != nil {
			t.Fatal(err)
		}
		want := `
# HELP deckle_template_loads_total How often the site's file was judged, by the state that followed.
# TYPE deckle_template_loads_total counter
deckle_template_loads_total{site="a",state="disabled"} 0
deckle_template_loads_total{site="a",state="last_good"} 1
deckle_template_loads_total{site="a",state="off_invalid"} 0
deckle_template_loads_total{site="a",state="off_missing"} 0
deckle_template_loads_total{site="a",state="ok"} 1
# HELP deckle_template_slots Slots of the template in use; 0 = ads are off.
# TYPE deckle_template_slots gauge
deckle_template_slots{site="a"} 1
# HELP deckle_template_state 1 for the state that the site's template is in: ok, last_good, disabled, off_missing, off_invalid.
# TYPE deckle_template_state gauge
deckle_template_state{site="a",state="disabled"} 0
deckle_template_state{site="a",state="last_good"} 1
deckle_template_state{site="a",state="off_invalid"} 0
deckle_template_state{site="a",state="off_missing"} 0
deckle_template_state{site="a",state="ok"} 0
`
		names := []string{"deckle_template_loads_total", "deckle_template_slots", "deckle_template_state"}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	})
}
