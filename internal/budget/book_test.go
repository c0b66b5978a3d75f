package budget_test

import (
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/catalog"
	"deckle/internal/obs"
)

const (
	day0      = "2000-01-01" // the first day of a bubble
	campDay   = "campaign/autumn/" + day0
	campTotal = "campaign/autumn"
	innDay    = "advertiser/inn/" + day0
)

// inn puts an advertiser and its campaign.
func (w *world) inn(advertiserDay, campaignDay, total deckle.Money) {
	w.Helper()
	w.put(advertiser("inn", advertiserDay))
	w.put(campaign("autumn", "inn", campaignDay, total))
}

func (w *world) leased(m *machine, names ...string) {
	w.Helper()
	w.eventually(5*time.Second, "leases of "+strings.Join(names, ", "), func() bool {
		for _, name := range names {
			if m.line(name).Free == 0 {
				return false
			}
		}
		return true
	})
}

// spend shows an ad every two seconds, n times, and tells how often it could.
func (m *machine) spend(campaign string, n int, price deckle.Money) (shown int) {
	for range n {
		if a, ok := m.reserve(campaign, price); ok {
			m.beacon(a)
			shown++
		}
		time.Sleep(2 * time.Second)
	}
	return shown
}

// An impression is paid from every line that it counts for, by leases that the journal
// has; a refused one takes from none.
func TestReservesFromEveryLine(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 500_000, 4_000_000)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, campTotal, innDay)

		free := func() [3]deckle.Money {
			return [3]deckle.Money{m.line(campTotal).Free, m.line(campDay).Free, m.line(innDay).Free}
		}
		before := free()
		c, _ := w.catalog.Snapshot().Campaign("autumn")
		inn, _ := w.catalog.Snapshot().Advertiser("inn")
		for price, want := range map[deckle.Money]bool{900: true, before[1]: true, before[1] + 1: false} {
			if got := m.Afford(c, inn, price, time.Now()); got != want {
				t.Errorf("%d of %v can be paid: %v", price, before, got)
			}
		}
		if got := free(); got != before {
			t.Errorf("to ask took something: free %v, want %v", got, before)
		}
		a, ok := m.reserve("autumn", 900)
		if !ok || len(a.leases) != 3 {
			t.Fatalf("reserved %v from %v", ok, a.leases)
		}
		if got, want := free(), [3]deckle.Money{before[0] - 900, before[1] - 900, before[2] - 900}; got != want {
			t.Errorf("free %v, want %v", got, want)
		}
		if _, ok := m.reserve("autumn", before[1]); ok {
			t.Error("reserved more than the day's lease has")
		}
		if got := free(); got[0] != before[0]-900 || got[2] != before[2]-900 {
			t.Errorf("a refused price was kept of %v, free now %v", before, got)
		}
		m.beacon(a)
		w.eventually(time.Second, "the impression has been folded", func() bool { return m.line(campDay).Spent == 900 })
		if l := m.line(innDay); l.Held != 0 || l.Spent != 900 {
			t.Errorf("after the fold: %+v", l)
		}
	})
}

// What is held comes back when its token has ended, or at once when its slot is given
// up; and not when it has been paid.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 500_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, innDay)
		before := m.line(campDay).Free

		given, _ := m.reserve("autumn", 1000)
		m.Release(given.request)
		m.Release(given.request)
		if got := m.line(campDay).Free; got != before {
			t.Errorf("given up: %d free, want %d", got, before)
		}
		paid, _ := m.reserve("autumn", 300)
		lost, _ := m.reserve("autumn", 500)
		m.beacon(paid)
		time.Sleep(holdTime - time.Second)
		if got := m.line(campDay); got.Free != before-800 || got.Held != 500 {
			t.Errorf("before the end of %v: %+v", lost, got)
		}
		time.Sleep(3 * time.Second)
		if got := m.line(campDay); got.Free != before-300 || got.Held != 0 {
			t.Errorf("after its end: %+v, %d free before", got, before)
		}
		m.beacon(lost) // very late, and there is still money in the lease
		w.eventually(time.Second, "the late one is paid", func() bool { return m.line(campDay).Spent == 800 })
		if got := m.line(campDay).Free; got != before-800 {
			t.Errorf("late: %d free, want %d", got, before-800)
		}
	})
}

// A budget is spent to its last impression and not beyond, whatever becomes of the
// beacons.
func TestSpendsToTheLastImpression(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                      string
		advertiserDay, day, total deckle.Money
		price                     deckle.Money
		lost                      int // of 10
		want                      deckle.Money
	}{
		{"campaign day", 10_000_000, 100_000, 0, 1000, 0, 100_000},
		{"advertiser day", 50_000, 100_000, 0, 1000, 0, 50_000},
		{"total", 10_000_000, 100_000, 30_500, 1000, 0, 30_000},
		{"uneven price", 10_000_000, 100_000, 0, 701, 0, 99_542},
		{"low price", 10_000_000, 2_300, 0, 100, 0, 2_300},
		{"less than one", 10_000_000, 900, 0, 300, 0, 900},
		{"beacons that never come", 10_000_000, 100_000, 0, 1000, 4, 100_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.inn(c.advertiserDay, c.day, c.total)
				m := w.start(parts{})
				defer m.stop()
				n := 0
				for range 3 * 3600 / 2 {
					if a, ok := m.reserve("autumn", c.price); ok {
						if n++; n%10 >= c.lost {
							m.beacon(a)
						}
					}
					time.Sleep(2 * time.Second)
				}
				if got := m.hot.SpendTotal("autumn"); got != c.want {
					t.Errorf("spent %d, want %d: %+v", got, c.want, m.Lines())
				}
			})
		})
	}
}

// A crash leaves a lease that nobody uses; the campaign goes on with the rest, and
// some minutes later with all of it.
func TestCrashStopsNoCampaign(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		first := w.start(parts{})
		w.leased(first, campDay, innDay)
		paid, _ := first.reserve("autumn", 1000)
		onTheWire, _ := first.reserve("autumn", 1000)
		first.beacon(paid)
		first.kill()

		second := w.start(parts{})
		defer second.stop()
		w.leased(second, campDay, innDay)
		a, ok := second.reserve("autumn", 1000)
		if !ok || a.leases[0] == paid.leases[0] {
			t.Fatalf("after the crash: %v from %v", ok, a.leases)
		}
		second.beacon(a)
		second.beacon(onTheWire)
		w.eventually(time.Second, "all are paid", func() bool { return second.hot.SpendTotal("autumn") == 3000 })
		if l := second.line(campDay); l.Leases != 2 || l.Settled != 0 {
			t.Fatalf("the first lease is not kept for its tokens: %+v", l)
		}
		w.eventually(holdTime+time.Minute, "the first lease is settled", func() bool { return second.line(campDay).Settled == 2000 })
		second.beacon(ad{"autumn", "inn", 1000, w.request(), paid.leases, time.Now()})
		time.Sleep(time.Second)
		if got := second.hot.SpendTotal("autumn"); got != 3000 {
			t.Errorf("paid by a lease after its seal: %d", got)
		}
	})
}

// A deploy gives back at once what no token names.
func TestOrderlyEndGivesBack(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		w.put(campaign("winter", "inn", 100_000, 0))
		first := w.start(parts{})
		w.leased(first, campDay, innDay, "campaign/winter/"+day0)
		held, _ := first.reserve("autumn", 1000)
		paid, _ := first.reserve("winter", 1000)
		first.beacon(paid)
		time.Sleep(time.Second)
		first.stop()
		if _, ok := first.reserve("autumn", 1000); ok {
			t.Error("reserved after the end")
		}

		second := w.start(parts{})
		defer second.stop()
		w.eventually(2*time.Second, "the idle lease is settled", func() bool {
			return second.line("campaign/winter/"+day0).Settled == 1000
		})
		if l := second.line(campDay); l.Settled != 0 {
			t.Errorf("a lease was sealed whose token may still come: %+v", l)
		}
		second.beacon(held)
		w.eventually(holdTime+5*time.Second, "the other is settled as soon as its token has ended", func() bool {
			return second.line(campDay).Settled == 1000
		})
	})
}

// A budget that is raised is there at once.
func TestRaisedBudget(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(100_000_000, 8_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, innDay)
		if got := m.spend("autumn", 20, 1000); got != 8 {
			t.Fatalf("%d of 8 impressions", got)
		}
		w.put(campaign("autumn", "inn", 12_000, 0))
		time.Sleep(1500 * time.Millisecond)
		if got := m.spend("autumn", 20, 1000); got != 4 {
			t.Fatalf("%d of 4 after it was raised", got)
		}
	})
}

// A budget that is cut below what is leased is held to as the leases end.
func TestCutBudget(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(100_000_000, 80_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, innDay)
		first, _ := m.reserve("autumn", 1000)
		second, _ := m.reserve("autumn", 1000)
		w.put(campaign("autumn", "inn", 5_000, 0))
		time.Sleep(1500 * time.Millisecond)
		if l := m.line(campDay); !l.Cut || l.Budget != 5_000 || l.Free != 0 {
			t.Errorf("after the cut: %+v", l)
		}
		if _, ok := m.reserve("autumn", 1000); ok {
			t.Error("reserved while more is leased than the budget has")
		}
		m.beacon(first)
		m.beacon(second)
		w.eventually(5*time.Second, "the cut has taken effect", func() bool { return !m.line(campDay).Cut })
		if got := m.spend("autumn", 20, 1000); got != 3 {
			t.Errorf("%d of the 3 impressions that are left", got)
		}
	})
}

// At midnight of the advertiser the next day's lines are there already.
func TestDaysRoll(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		a := advertiser("inn", 1_000_000)
		a.TimeZone = "Asia/Tokyo" // 09:00 at the bubble's beginning
		w.put(a)
		w.put(campaign("autumn", "inn", 500_000, 0))
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, "campaign/autumn/2000-01-01")
		last, _ := m.reserve("autumn", 1000)
		m.beacon(last)
		time.Sleep(15*time.Hour - time.Minute - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
		if m.line("campaign/autumn/2000-01-02").Free == 0 {
			t.Error("no lease of tomorrow a minute before midnight")
		}
		before, ok := m.reserve("autumn", 1000)
		time.Sleep(time.Minute)
		after, ok2 := m.reserve("autumn", 1000)
		if !ok || !ok2 || before.leases[0] == after.leases[0] {
			t.Fatalf("across midnight: %v %v", before, after)
		}
		m.beacon(before)
		m.beacon(after)
		w.eventually(2*holdTime, "yesterday is settled", func() bool {
			l := m.line("campaign/autumn/2000-01-01")
			return l.Settled == 2000 && l.Leases == 0
		})
		if l := m.line("campaign/autumn/2000-01-02"); l.Spent != 1000 {
			t.Errorf("today: %+v", l)
		}
		m.stop()
		time.Sleep(5 * 24 * time.Hour)
		m = w.start(parts{})
		defer m.stop()
		w.leased(m, "campaign/autumn/2000-01-07")
		w.eventually(5*time.Second, "a line of days ago is forgotten", func() bool {
			_, known := m.Line("campaign/autumn/2000-01-01")
			return !known
		})
	})
}

// Without the store the book spends what it has, and says so.
func TestStoreOutage(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay, innDay)
		w.leases.Close()
		time.Sleep(20 * time.Second)
		if c := m.Checks()[0]; c.State != obs.Degraded || !strings.Contains(c.Note, "nothing more") {
			t.Errorf("check = %+v", c)
		}
		n := 0
		for range 200 {
			if a, ok := m.reserve("autumn", 1000); ok {
				m.beacon(a)
				n++
			}
			time.Sleep(time.Second)
		}
		if n < 10 || n > 20 {
			t.Errorf("%d impressions from a lease of an eighth of 100", n)
		}
		w.leases.Reopen()
		w.leased(m, campDay, innDay)
		w.eventually(20*time.Second, "it says that all is well", func() bool { return m.Checks()[0].State == obs.OK })
	})
}

// Campaigns that may not serve have no leases, and those that may not any more give
// them back.
func TestWhoGetsLeases(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		w.inn(1_000_000, 100_000, 0)
		paused := campaign("paused", "inn", 100_000, 0)
		paused.Status = catalog.Paused
		later := campaign("later", "inn", 100_000, 0)
		later.Start = "2000-01-01T06:00:00Z"
		ended := campaign("ended", "inn", 100_000, 0)
		ended.End = "2000-01-01T00:00:00Z"
		for _, c := range []*catalog.Campaign{paused, later, ended} {
			w.put(c)
		}
		m := w.start(parts{})
		defer m.stop()
		w.leased(m, campDay)
		for _, id := range []string{"paused", "later", "ended"} {
			if _, ok := m.reserve(id, 1000); ok {
				t.Errorf("%s may reserve", id)
			}
		}
		time.Sleep(6*time.Hour - time.Minute)
		if m.line("campaign/later/"+day0).Free == 0 {
			t.Error("a campaign that begins in a minute has no lease")
		}
		off := campaign("autumn", "inn", 100_000, 0)
		off.Status = catalog.Paused
		w.put(off)
		w.eventually(5*time.Second, "the lease is given back", func() bool { return m.line(campDay).Leases == 0 })
		w.put(campaign("autumn", "inn", 100_000, 0))
		w.leased(m, campDay)
		suspended := advertiser("inn", 1_000_000)
		suspended.Status = catalog.Suspended
		w.put(suspended)
		w.eventually(5*time.Second, "those of a suspended advertiser are given back", func() bool {
			return m.line(campDay).Leases == 0 && m.line(innDay).Leases == 0
		})
	})
}

// A total counts what was spent while there was none: it was taken away and is set again,
// on however many nodes, or comes late.
func TestTotalThatIsSetLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		totals []deckle.Money // one after the other; of each as many impressions as asked for, if there is enough
		asked  int
		want   int
	}{
		"taken away and set again":  {[]deckle.Money{20_000, 0, 20_000}, 8, 20},
		"set to more than is spent": {[]deckle.Money{0, 30_000}, 25, 30},
		"set to less than is spent": {[]deckle.Money{0, 10_000}, 30, 30},
		"set to just what is spent": {[]deckle.Money{0, 30_000}, 30, 30},
		"taken away twice":          {[]deckle.Money{20_000, 0, 15_000, 0, 26_000}, 6, 26},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, func(w *world) {
				w.inn(100_000_000, 90_000_000, c.totals[0])
				nodes := [2]*machine{w.start(parts{}), w.start(parts{})}
				defer nodes[0].stop()
				defer nodes[1].stop()
				spent := 0
				for i, total := range c.totals {
					w.put(campaign("autumn", "inn", 90_000_000, total))
					time.Sleep(30 * time.Second)
					spent += nodes[i%2].spend("autumn", c.asked, 1000)
				}
				time.Sleep(2 * holdTime)
				if c.totals[len(c.totals)-1] > 0 {
					spent += nodes[0].spend("autumn", 40, 1000) + nodes[1].spend("autumn", 40, 1000)
				}
				if got := nodes[0].hot.SpendTotal("autumn"); spent != c.want || got != deckle.Money(1000*c.want) {
					t.Errorf("%d impressions, %d billed, want %d", spent, got, c.want)
				}
				if l := nodes[1].line(campTotal); l.Spent != nodes[1].hot.SpendTotal("autumn") {
					t.Errorf("%+v, and %d are spent", l, nodes[1].hot.SpendTotal("autumn"))
				}
			})
		})
	}
}
