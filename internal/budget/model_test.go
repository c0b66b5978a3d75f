package budget_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// A chance decides what happens in a history.
type chance interface{ upTo(n int) int } // 0 to n-1

// A history is some hours of up to three nodes on one store, in which everything goes
// wrong that may.
type history struct {
	chance
	w     *world
	with  func(n *nodeParts) parts // what is between the nodes and the store
	nodes [3]*modelNode
	judge *judge

	wire    []ad                  // beacons that are, or were, on their way
	owners  map[string]*modelNode // of leases that were reserved from
	before  map[string]judged     // lines at the last look
	limits  []limits              // their budgets of late
	counted map[string]int        // what has happened
}

// limits are budgets as they were until some time. One that is cut goes on for as long as
// a write may be on its way that was decided before.
type limits struct {
	until time.Time
	of    map[string]deckle.Money
}

const onItsWay = 5 * time.Second

// A modelNode is a machine with a view of the catalog and a fold that may both be
// late.
type modelNode struct {
	*machine
	late *nodeParts
}

type nodeParts struct {
	mu      sync.Mutex
	catalog *catalog.Snapshot // what it knows, while it is late; nil: all
	paused  bool              // its fold waits
	stale   bool              // it hears nothing of what others write
	cut     bool              // it can reach nothing, and nothing reaches it
	changed sync.Cond         // on mu: one of these
}

func newNodeParts() *nodeParts {
	n := &nodeParts{}
	n.changed.L = &n.mu
	return n
}

func (n *nodeParts) set(what *bool, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	*what = on
	n.changed.Broadcast()
}

// heal lets all through.
func (n *nodeParts) heal() {
	n.set(&n.paused, false)
	n.set(&n.stale, false)
	n.set(&n.cut, false)
}

// waitFor waits until it is not so, or ctx is done.
func (n *nodeParts) waitFor(ctx context.Context, what func() bool) {
	stop := context.AfterFunc(ctx, n.heal)
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for what() && ctx.Err() == nil {
		n.changed.Wait()
	}
}

func (n *nodeParts) reach() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut {
		return fmt.Errorf("cut off: %w", store.ErrUnavailable)
	}
	return nil
}

func (n *nodeParts) lag(s *catalog.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.catalog = s
}

// lateLog is a log whose reader waits while it is paused.
type lateLog struct {
	store.Log
	n *nodeParts
}

func (l lateLog) Read(ctx context.Context, from store.Seq, yield func(store.Message) error) error {
	return l.Log.Read(ctx, from, func(m store.Message) error {
		l.n.waitFor(ctx, func() bool { return l.n.paused || l.n.cut })
		return yield(m)
	})
}

func (l lateLog) Append(ctx context.Context, id string, data []byte) (store.Seq, error) {
	if err := l.n.reach(); err != nil {
		return 0, err
	}
	return l.Log.Append(ctx, id, data)
}

// cutKV is a bucket that a node may be cut off from.
type cutKV struct {
	store.KV
	n *nodeParts
}

func (k cutKV) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := k.n.reach(); err != nil {
		return 0, err
	}
	return k.KV.Put(ctx, key, value, revision)
}

func (k cutKV) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := k.n.reach(); err != nil {
		return store.Entry{}, err
	}
	return k.KV.Get(ctx, key)
}

func (k cutKV) Watch(ctx context.Context, yield func(store.Change) error) error {
	return k.KV.Watch(ctx, func(c store.Change) error {
		k.n.waitFor(ctx, func() bool { return k.n.stale || k.n.cut })
		return yield(c)
	})
}

func (h *history) snapshot(n *nodeParts) *catalog.Snapshot {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.catalog != nil {
		return n.catalog
	}
	return h.w.catalog.Snapshot()
}

// honest are the parts that nothing is wrong with but what the history does.
func (h *history) honest(n *nodeParts) parts {
	return parts{
		kv:      func(kv store.KV) store.KV { return cutKV{kv, n} },
		log:     func(l store.Log) store.Log { return lateLog{l, n} },
		catalog: func() *catalog.Snapshot { return h.snapshot(n) },
	}
}

var modelCampaigns = []string{"autumn", "winter", "spring"}

// begin is at five minutes to midnight in Kathmandu, and twenty in Kolkata.
func begin(t testing.TB, ctx context.Context, c chance) *history {
	h := &history{
		chance: c, w: newWorld(t, ctx), judge: newJudge(), owners: map[string]*modelNode{},
		before: map[string]judged{}, counted: map[string]int{},
	}
	h.with = h.honest
	nepal, india := advertiser("nepal", 60_000), advertiser("india", 200_000)
	nepal.TimeZone, india.TimeZone = "Asia/Kathmandu", "Asia/Kolkata"
	h.w.put(nepal)
	h.w.put(india)
	h.w.put(campaign("autumn", "nepal", 40_000, 90_000))
	h.w.put(campaign("winter", "nepal", 50_000, 0))
	h.w.put(campaign("spring", "india", 30_000, 30_000))
	h.limits = []limits{{of: h.budgets()}}
	return h
}

// toMidnight waits until it is close to the bubble's 18:15 UTC, with nobody running.
func toMidnight() {
	now := time.Now().UTC()
	next := time.Date(now.Year(), now.Month(), now.Day(), 18, 10, 0, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	time.Sleep(next.Sub(now))
}

// budgets are the limits of all lines by whatever any node takes for the catalog.
func (h *history) budgets() map[string]deckle.Money {
	limits := map[string]deckle.Money{}
	add := func(s *catalog.Snapshot) {
		for _, id := range modelCampaigns {
			c, _ := s.Campaign(id)
			a, _ := s.Advertiser(c.Advertiser)
			limits["campaign/"+id] = max(limits["campaign/"+id], c.TotalBudget)
			zone, _ := time.LoadLocation(a.TimeZone)
			for _, day := range []int{0, 1} {
				date := time.Now().In(zone).AddDate(0, 0, day).Format(time.DateOnly)
				limits["campaign/"+id+"/"+date] = max(limits["campaign/"+id+"/"+date], c.DailyBudget)
				limits["advertiser/"+a.ID+"/"+date] = max(limits["advertiser/"+a.ID+"/"+date], a.DailyBudget)
			}
		}
	}
	add(h.w.catalog.Snapshot())
	for _, n := range h.nodes {
		if n != nil {
			add(h.snapshot(n.late))
		}
	}
	return limits
}

// check looks at all that the contract calls invariant.
func (h *history) check() error {
	synctest.Wait()
	if err := h.judge.read(h.w.ctx, h.w.log, h.w.leases); err != nil {
		return err
	}
	now := time.Now()
	h.limits[len(h.limits)-1].until = now
	h.limits = append(h.limits, limits{now, h.budgets()})
	h.limits = slices.DeleteFunc(h.limits, func(l limits) bool { return now.Sub(l.until) > onItsWay })
	err := h.judge.verdict(func(line string) deckle.Money {
		// What is spent outside of a total may be more than it leaves, but no lease may then
		// be taken.
		most := h.before[line].committed()
		if now := h.judge.stored[line]; now.Outside > h.before[line].Outside {
			most += now.Outside - h.before[line].Outside
		}
		for _, l := range h.limits {
			most = max(most, l.of[line])
		}
		return most
	})
	if err != nil {
		return err
	}
	for name, l := range h.judge.stored {
		h.before[name] = l
	}
	for _, n := range h.nodes {
		if n == nil {
			continue
		}
		for id, paid := range h.judge.paid {
			if folded, ok := n.hot.Lease(id); ok && folded.Spent > paid {
				return fmt.Errorf("a fold has lease %s pay %d, the journal %d", id, folded.Spent, paid)
			}
		}
	}
	return nil
}

func (h *history) count(what string) { h.counted[what]++ }

// any is one of the nodes that run, or nil.
func (h *history) any() *modelNode {
	var up []*modelNode
	for i, n := range h.nodes {
		if n != nil && n.gate.isShut() {
			n.kill()
			h.nodes[i] = nil
			h.count("killed at a write")
		} else if n != nil {
			up = append(up, n)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[h.upTo(len(up))]
}

// A move is one step of a history.
type move struct {
	name string
	do   func(h *history) error
}

var moves = []move{
	{"reserve", (*history).reserve},
	{"reserve", (*history).reserve},
	{"reserve", (*history).reserve},
	{"beacon", (*history).beacon},
	{"beacon", (*history).beacon},
	{"wait", (*history).wait},
	{"wait", (*history).wait},
	{"node", (*history).node},
	{"node", (*history).node},
	{"fault", (*history).fault},
	{"edit", (*history).edit},
	{"late", (*history).lateness},
	{"late", (*history).lateness},
	{"seal", (*history).sealOne},
}

// reserve fills some slots. The leases must be there for all to see, and be those of
// this very start of this very node.
func (h *history) reserve() error {
	n := h.any()
	if n == nil {
		return nil
	}
	campaign, price := modelCampaigns[h.upTo(3)], deckle.Money(1+h.upTo(1000))
	for range 1 + h.upTo(20) {
		a, ok := n.reserve(campaign, price)
		if !ok {
			h.count("refused")
			return nil
		}
		h.count("reserved")
		if h.upTo(10) == 0 {
			n.Release(a.request)
			continue
		}
		h.wire = append(h.wire, a)
		if err := h.judge.read(h.w.ctx, h.w.log, h.w.leases); err != nil {
			return err
		}
		for _, id := range a.leases {
			if _, ok := h.judge.amount[id]; !ok && !h.judge.sealed[id] {
				return fmt.Errorf("reserved from lease %s, which the journal does not have", id)
			}
			if owner := h.owners[id]; owner != nil && owner != n {
				return fmt.Errorf("lease %s is reserved from by two starts of nodes", id)
			}
			h.owners[id] = n
		}
	}
	return nil
}

// beacon tells of some ads, now or long after, for the first time or again, to whichever
// node.
func (h *history) beacon() error {
	for range 1 + h.upTo(8) {
		n := h.any()
		if n == nil || len(h.wire) == 0 {
			return nil
		}
		i := h.upTo(len(h.wire))
		_ = n.tell(h.wire[i]) // it may be lost, it may have come
		h.count("beacon")
		if h.upTo(3) > 0 {
			h.wire = slices.Delete(h.wire, i, i+1)
		}
	}
	return nil
}

func (h *history) wait() error {
	for range 1 + h.upTo(2) {
		time.Sleep([]time.Duration{
			time.Millisecond, 100 * time.Millisecond, time.Second, time.Second, 3 * time.Second, 10 * time.Second,
			10 * time.Second, time.Minute, holdTime + 5*time.Second,
		}[h.upTo(9)])
	}
	return nil
}

// node starts one that is down, or ends one: in order, at once, or between two writes.
func (h *history) node() error {
	i := h.upTo(len(h.nodes))
	n := h.nodes[i]
	switch how := h.upTo(6); {
	case n == nil:
		late := newNodeParts()
		h.nodes[i] = &modelNode{machine: h.w.start(h.with(late)), late: late}
		h.count("started")
	case how < 2:
		n.gate.shutAfter(1+h.upTo(12), h.upTo(2) == 0)
	case how == 2:
		n.kill()
		h.nodes[i] = nil
		h.count("killed")
	case how == 3:
		n.late.heal()
		n.stop()
		h.nodes[i] = nil
		h.count("ended")
	}
	return nil
}

// fault breaks some of the next writes.
func (h *history) fault() error {
	var faults []memory.Fault
	for range 1 + h.upTo(4) {
		faults = append(faults, []memory.Fault{
			{LoseAnswer: true},
			{LoseAnswer: true, Delay: time.Second},
			{Refuse: store.ErrUnavailable},
			{Delay: 3 * time.Second},
			{},
		}[h.upTo(5)])
	}
	if h.upTo(3) == 0 {
		h.w.log.Fail(faults...)
		h.count("journal fault")
	} else {
		h.w.leases.Fail(faults...)
		h.count("store fault")
	}
	return nil
}

// edit changes a budget, up or down.
func (h *history) edit() error {
	s := h.w.catalog.Snapshot()
	id := modelCampaigns[h.upTo(3)]
	was, _ := s.Campaign(id)
	c := *was
	scale := func(m deckle.Money) deckle.Money { return max(m*deckle.Money(1+h.upTo(7))/4, 1_000) }
	switch h.upTo(4) {
	case 0:
		c.DailyBudget = scale(c.DailyBudget)
	case 1:
		if c.TotalBudget = scale(c.TotalBudget); h.upTo(3) == 0 {
			c.TotalBudget = 0
			h.count("total removed")
		} else if was.TotalBudget == 0 {
			c.TotalBudget = scale(60_000)
			h.count("total set late")
		}
	case 2:
		a, _ := s.Advertiser(c.Advertiser)
		edited := *a
		edited.DailyBudget = scale(a.DailyBudget)
		h.w.put(&edited)
	case 3:
		c.Status = map[catalog.Status]catalog.Status{catalog.Active: catalog.Paused, catalog.Paused: catalog.Active}[c.Status]
	}
	h.w.put(&c)
	h.count("edited")
	return nil
}

// lateness makes a node's view of the catalog, or its fold, late or not.
func (h *history) lateness() error {
	n := h.any()
	if n == nil {
		return nil
	}
	switch h.upTo(8) {
	case 0:
		n.late.lag(h.w.catalog.Snapshot())
		h.count("late catalog")
	case 1:
		n.late.lag(nil)
	case 2:
		n.late.set(&n.late.paused, true)
		h.count("late fold")
	case 3:
		n.late.set(&n.late.stale, true)
		h.count("stale reads")
	case 4:
		n.late.set(&n.late.cut, true)
		h.count("cut off")
	default:
		n.late.heal()
	}
	return nil
}

// sealOne is somebody who seals a lease too early.
func (h *history) sealOne() error {
	n := h.any()
	lines := slices.Sorted(maps.Keys(h.judge.stored))
	if n == nil || len(lines) == 0 || h.upTo(2) == 0 {
		return nil
	}
	name := lines[h.upTo(len(lines))]
	if leases := h.judge.stored[name].Leases; len(leases) > 0 {
		_, _ = n.jnl.Append(h.w.ctx, journal.Event{Kind: journal.Seal, At: time.Now(), Lease: leases[h.upTo(len(leases))].ID, Line: name})
		h.count("sealed early")
	}
	return nil
}

// run makes a history of so many steps, and looks after each.
func (h *history) run(steps int) error {
	for range steps {
		m := moves[h.upTo(len(moves))]
		if err := m.do(h); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := h.check(); err != nil {
			return fmt.Errorf("after %s: %w", m.name, err)
		}
	}
	return h.settle()
}

// settle lets everything end, and one node begin: nothing may stay behind.
func (h *history) settle() error {
	h.end()
	time.Sleep(10 * time.Second) // for faults that wait
	h.drain()
	late := newNodeParts()
	n := h.w.start(h.with(late))
	defer n.kill()
	h.nodes[0] = &modelNode{n, late}
	defer func() { h.nodes[0] = nil }()
	time.Sleep(2*holdTime + 2*time.Minute)
	if err := h.check(); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	for _, l := range n.Lines() {
		if want := h.judge.spent(l.Name) + h.judge.stored[l.Name].Outside; l.Leased != l.Free || l.Settled != want {
			return fmt.Errorf("in the end %+v is not settled; the journal has %d", l, h.judge.spent(l.Name))
		}
		if l.Budget > l.Settled && l.Free == 0 && h.serves(l) {
			return fmt.Errorf("in the end nothing can be reserved of %+v", l)
		}
	}
	return h.exhaust(n)
}

// exhaust spends what is left of each total: no campaign may have more than that.
func (h *history) exhaust(n *machine) error {
	was := maps.Clone(h.judge.bills)
	for _, id := range modelCampaigns {
		n.spend(id, 200, 1000)
	}
	if err := h.check(); err != nil {
		return fmt.Errorf("when all is spent: %w", err)
	}
	for _, id := range modelCampaigns {
		c, _ := h.w.catalog.Snapshot().Campaign(id)
		if got := h.judge.bills[id]; c.TotalBudget > 0 && got > max(c.TotalBudget, was[id]) {
			return fmt.Errorf("when all is spent: %s has spent %d of %d in all, %d of it before", id, got, c.TotalBudget, was[id])
		}
	}
	return nil
}

// serves reports whether it is the line's day, or soon will be.
func (h *history) serves(l budget.Line) bool {
	if l.Kind == budget.CampaignTotal {
		return true
	}
	day, _ := time.Parse(time.DateOnly, l.Date)
	return time.Now().After(day.Add(-5*time.Hour-30*time.Minute)) && l.Free == 0
}

// drain uses up the faults that have not happened, with writes that cannot.
func (h *history) drain() {
	for h.w.leases.Pending() > 0 {
		_, _ = h.w.leases.Put(h.w.ctx, "drain", nil, 1)
	}
	for h.w.log.Pending() > 0 {
		_, _ = h.w.log.Append(h.w.ctx, "drain", make([]byte, store.MaxMessage+1))
	}
}

// end kills who is left.
func (h *history) end() {
	for i, n := range h.nodes {
		if n != nil {
			n.late.heal()
			n.kill()
			h.nodes[i] = nil
		}
	}
}

type drawn struct{ t *rapid.T }

func (d drawn) upTo(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

// tellHistory makes a history in a bubble of its own.
func tellHistory(t *testing.T, c chance, steps int, with func(*history, *nodeParts) parts) (h *history, err error) {
	var panicked any // of the chance, when it has no more to give
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		h = begin(t, ctx, c)
		h.with = func(n *nodeParts) parts { return with(h, n) }
		toMidnight()
		defer h.end()
		defer func() { panicked = recover() }()
		err = h.run(steps)
	})
	if panicked != nil {
		panic(panicked)
	}
	return h, err
}

// The five invariants hold after every step of every history.
func TestBudgetsHoldWhateverHappens(t *testing.T) {
	t.Parallel()
	histories := 4
	if os.Getenv("DECKLE_SLOW") != "" {
		histories = 100
	}
	counted := map[string]int{}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > histories {
			return
		}
		h, err := tellHistory(t, drawn{rt}, 140, (*history).honest)
		if err != nil {
			rt.Fatal(err)
		}
		for what, n := range h.counted {
			counted[what] += n
		}
		for what, n := range h.judge.wasted {
			counted["unbilled "+what] += n
		}
		counted["billed"] += h.judge.billed
	})
	t.Log(counted)
	musts := []string{"reserved", "refused", "billed", "started", "edited"}
	if histories > 50 {
		musts = append(musts, "killed", "killed at a write", "ended", "journal fault", "store fault", "late catalog", "late fold",
			"stale reads", "cut off", "sealed early", "unbilled duplicate", "unbilled sealed", "total removed", "total set late")
	}
	for _, what := range musts {
		if counted[what] == 0 {
			t.Errorf("%s: has not happened, nothing was tested", what)
		}
	}
}
