package track_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
	"deckle/internal/token"
	"deckle/internal/track"
)

// A sale is a filled slot whose impression may be told in any way.
type sale struct {
	token.Beacon
	sold  time.Time
	told  bool // its impression, with a token that was valid then
	taken bool // and answered with 204
}

// Nobody makes an advertiser pay more than the price of each slot that was sold, by
// dropping, repeating, delaying or forging what browsers tell; and what was answered
// with 204 is paid, as long as its lease can pay.
func TestSpendIsThatOfUniqueImpressions(t *testing.T) {
	inBubble(t, func(n *node, log *memory.Log) {
		n.foldAlong()
		run := 0
		rapid.Check(t, func(t *rapid.T) {
			run++
			m := &market{n: n, log: log, campaign: fmt.Sprintf("camp-%d", run)}
			m.sell(t)
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				m.step(t)
			}
			m.check(t)
		})
	})
}

// A market is some sales of a campaign, each paid by a lease of its own size.
type market struct {
	n        *node
	log      *memory.Log
	campaign string
	amount   deckle.Money
	sales    []*sale
}

func (m *market) lease() string { return m.campaign + "-lease" }

func (m *market) sell(t *rapid.T) {
	m.amount = deckle.Money(rapid.SampledFrom([]int{3_000, 1_000_000}).Draw(t, "lease"))
	m.n.journalLease(m.lease(), m.amount)
	for i := range rapid.IntRange(1, 5).Draw(t, "slots") {
		b := filled(0)
		b.Campaign, b.RequestID = m.campaign, fmt.Sprintf("%08x%08x", len(m.n.events()), i)
		b.Leases = []string{m.lease()}
		b.Price = deckle.Money(rapid.SampledFrom([]int{0, 1_000, 1_460, 50_000}).Draw(t, "price"))
		b.Dogeared = rapid.IntRange(0, 3).Draw(t, "pinned") == 0
		m.sales = append(m.sales, &sale{Beacon: b, sold: time.Now()})
	}
}

// step lets some time pass, and something happen.
func (m *market) step(t *rapid.T) {
	time.Sleep(rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute, 4 * time.Minute}).Draw(t, "later")) // of the bubble
	switch rapid.SampledFrom([]string{"tell", "tell", "tell", "forge", "fault", "restart"}).Draw(t, "step") {
	case "tell":
		m.tell(t)
	case "forge":
		m.forge(t)
	case "fault":
		f := rapid.SampledFrom([]memory.Fault{{LoseAnswer: true}, {Refuse: store.ErrUnavailable}, {Refuse: store.ErrFull}, {Delay: 3 * time.Second}}).Draw(t, "fault")
		m.log.Fail(times(rapid.SampledFrom([]int{1, 12}).Draw(t, "faults"), f)...)
	case "restart":
		m.n.serve()
	}
}

// tell tells an event of a sale with a token of ours, at its own path or another's.
func (m *market) tell(t *rapid.T) {
	events := []token.Event{token.Imp, token.View, token.Click, token.CTA}
	s := rapid.SampledFrom(m.sales).Draw(t, "sale")
	minted := rapid.SampledFrom(append(events, token.Imp, token.Imp)).Draw(t, "token")
	path := minted
	if rapid.IntRange(0, 4).Draw(t, "swap") == 0 {
		path = rapid.SampledFrom(events).Draw(t, "path")
	}
	skew := rapid.SampledFrom([]time.Duration{0, 0, -2 * time.Minute, 2 * time.Minute}).Draw(t, "skew") // of the node that sold it
	text := m.n.ring.MintBeacon(minted, s.Beacon, s.sold.Add(skew))
	suffix := rapid.SampledFrom([]string{"", "&dogeared=1", "&dogeared=0", "&price=0", "&t=x"}).Draw(t, "suffix")
	got := m.n.ask("GET", "/v1/"+string(path)+"?t="+escaped(text, rapid.IntRange(0, 1_023).Draw(t, "spelling"))+suffix, "")
	if minted == token.Imp && path == token.Imp {
		s.told = s.told || got.status != 403
		s.taken = s.taken || got.status == 204
	}
	if path != minted && got.status != 403 {
		t.Fatalf("a token of %s at %s: %v", minted, path, got)
	}
}

// forge tells what nobody has sold.
func (m *market) forge(t *rapid.T) {
	s := rapid.SampledFrom(m.sales).Draw(t, "sale")
	text := m.n.ring.MintBeacon(token.Imp, s.Beacon, s.sold)
	switch rapid.IntRange(0, 3).Draw(t, "how") {
	case 0: // one character is another
		i := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		c := rapid.SampledFrom([]byte("AQgw-_.09")).Draw(t, "character")
		if text[i] == c {
			return
		}
		text = text[:i] + string(c) + text[i+1:]
	case 1: // the price of one, the mac of another
		dear := s.Beacon
		dear.Price += 1_000_000
		payload, _, _ := strings.Cut(m.n.ring.MintBeacon(token.Imp, dear, s.sold), ".")
		_, mac, _ := strings.Cut(text, ".")
		text = payload + "." + mac
	case 2: // another's key
		text = token.NewRing(make([]byte, 32), nil).MintBeacon(token.Imp, s.Beacon, s.sold)
	case 3: // a fold
		text = m.n.ring.MintFold(s.Slot, s.sold)
	}
	if got := m.n.ask("GET", "/v1/imp?t="+text, ""); got.status != 403 {
		t.Fatalf("forged: %v", got)
	}
	if got := m.n.ask("POST", track.DogearPath, dogear("fold", text)); got.status == 204 && !strings.Contains(text, ".") {
		t.Fatalf("forged: %v", got)
	}
}

func (m *market) check(t *rapid.T) {
	for i := range 1_000 { // faults end with the run that they were drawn in
		if m.log.Pending() > 0 {
			m.n.ask("GET", m.n.beacon(token.View, filled(1_000_000+1_000*len(m.n.events())+i)), "")
		}
	}
	synctest.Wait()
	var least, most deckle.Money
	for _, s := range m.sales {
		if s.Dogeared {
			continue
		}
		if s.told {
			most += s.Price
		}
		if s.taken {
			least += s.Price
		}
	}
	spent := m.n.hot.SpendTotal(m.campaign)
	if spent > most || spent > m.amount {
		t.Fatalf("%d are spent, of at most %d, with a lease of %d", spent, most, m.amount)
	}
	if most <= m.amount && spent < least {
		t.Fatalf("%d are spent, and %d were answered with 204", spent, least)
	}
	for _, e := range m.n.events() {
		if e.Campaign == m.campaign && e.Kind == journal.Impression && e.Dogeared && e.Price > 0 {
			t.Fatalf("a bookmark costs %d", e.Price)
		}
	}
}
