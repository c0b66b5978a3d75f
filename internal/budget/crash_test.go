package budget_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"deckle"
	"deckle/internal/budget"
	"deckle/internal/catalog"
	"deckle/internal/journal"
	"deckle/internal/projection"
	"deckle/internal/store"
	"deckle/internal/store/memory"
)

// victimFolder is the folder of the store on which the test binary spends budgets
// instead of testing.
const victimFolder = "DECKLE_TEST_BUDGET_STORE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimFolder); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// victimBudgets are what the victims' campaigns may spend in a day, and in all.
var victimBudgets = map[string]deckle.Money{
	"campaign/c0": 3_000_000, "campaign/c1": 40_000_000, "campaign/c2": 1_000_000,
	"campaign/c0/": 2_000_000, "campaign/c1/": 20_000_000, "campaign/c2/": 900_000,
	"advertiser/inn/": 15_000_000,
}

func victimCatalog(ctx context.Context) (*catalog.Catalog, error) {
	c := catalog.New(memory.NewKV(), memory.NewKV(), catalog.Config{})
	put := func(e catalog.Entity) error {
		_, err := c.Put(ctx, e, catalog.Write{By: "tester"})
		return err
	}
	err := put(&catalog.Publisher{ID: "yuki", Name: "Yuki Media", Currency: "USD"})
	if err == nil {
		err = put(advertiser("inn", victimBudgets["advertiser/inn/"]))
	}
	for _, id := range []string{"c0", "c1", "c2"} {
		if err == nil {
			err = put(campaign(id, "inn", victimBudgets["campaign/"+id+"/"], victimBudgets["campaign/"+id]))
		}
	}
	go func() { _ = c.Run(ctx) }()
	<-c.Loaded()
	return c, err
}

// victimBook is a book whose holds are as short as they can be.
func victimBook(s *store.Store, j *journal.Journal, hot *projection.Hot, c *catalog.Catalog) *budget.Book {
	b := budget.New(budget.Config{
		KV: s.Leases(), Journal: j, Fold: hot, Snapshot: c.Snapshot, Log: quiet,
		BeaconWindow: time.Millisecond, MaxSkew: time.Millisecond, Grace: time.Millisecond, Beat: 200 * time.Millisecond,
	})
	hot.Notify(b.Folded)
	return b
}

// victim spends as fast as it can, with several beacons under way, and says which have
// been acknowledged.
func victim(dir string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{DataDir: dir}, quiet)
	if err != nil {
		return err
	}
	c, err := victimCatalog(ctx)
	if err != nil {
		return err
	}
	j, hot := journal.New(s.Journal(), journal.Config{}, journal.NewMetrics(), quiet), projection.NewHot(projection.Config{}, quiet)
	b := victimBook(s, j, hot, c)
	go func() { _ = j.Run(ctx) }()
	go func() { _ = hot.Run(ctx, s.Journal()) }()
	go func() { _ = b.Run(ctx) }()
	said := make(chan string)
	for range 8 {
		go func() {
			for {
				said <- spendOne(ctx, b, j, c)
			}
		}()
	}
	fmt.Println("open")
	for line := range said {
		fmt.Println(line)
	}
	return nil
}

// spendOne reserves and tells of one impression, and says "told" with its request id
// when that is durable.
func spendOne(ctx context.Context, b *budget.Book, j *journal.Journal, cat *catalog.Catalog) string {
	s := cat.Snapshot()
	c, _ := s.Campaign(fmt.Sprintf("c%d", rand.IntN(3)))
	a, _ := s.Advertiser(c.Advertiser)
	request, price := hexID(rand.Uint64()), deckle.Money(1+rand.IntN(1000))
	leases, ok := b.Reserve(c, a, price, request, time.Now())
	if !ok {
		pause := time.NewTimer(time.Millisecond)
		<-pause.C
		return "refused"
	}
	_, err := j.Append(ctx, journal.Event{
		Kind: journal.Impression, At: time.Now(), Site: "blog", Slot: "top", Advertiser: a.ID, Campaign: c.ID, Creative: "m",
		Version: 1, URL: "https://blog.example/", RequestID: request, Price: price, Leases: leases,
	})
	if err != nil {
		return "lost"
	}
	return "told " + request
}

// Processes are killed while they spend. What was acknowledged is counted once, and no
// budget is exceeded. DECKLE_SLOW=1 kills 50 of them, and then waits until all that they
// had leased is settled.
func TestKilledNodesOverspendNothing(t *testing.T) {
	t.Parallel()
	slow := os.Getenv("DECKLE_SLOW") != ""
	kills := 2
	if slow {
		kills = 50
	}
	dir, told := t.TempDir(), 0
	j := newJudge()
	for range kills {
		acknowledged := killVictim(t, dir, time.Duration(100+rand.IntN(700))*time.Millisecond)
		told += len(acknowledged)
		s := openStore(t, dir)
		judgeStore(t, j, s)
		for _, request := range acknowledged {
			if !j.told[request] {
				t.Errorf("impression %s was acknowledged and is not in the journal", request)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d acknowledged, %d billed, unbilled %v, %d leases", told, j.billed, j.wasted, len(j.amount))
	if told == 0 || j.billed == 0 {
		t.Error("nothing was spent, nothing was tested")
	}
	if len(j.wasted) > 0 {
		t.Errorf("impressions were reserved and are not billed: %v", j.wasted)
	}
	if slow {
		settleStore(t, j, dir)
	}
}

// judgeStore looks at what is on disk.
func judgeStore(t *testing.T, j *judge, s *store.Store) {
	t.Helper()
	if err := j.read(t.Context(), s.Journal(), s.Leases()); err != nil {
		t.Fatal(err)
	}
	if err := j.verdict(victimLimit); err != nil {
		t.Fatal(err)
	}
}

func victimLimit(line string) deckle.Money {
	if i := strings.LastIndex(line, "/"); strings.Count(line, "/") == 2 {
		line = line[:i+1]
	}
	return victimBudgets[line]
}

// settleStore waits until a last node, which spends nothing, has settled all that the
// killed ones had leased.
func settleStore(t *testing.T, j *judge, dir string) {
	s := openStore(t, dir)
	c, err := victimCatalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jnl, hot := journal.New(s.Journal(), journal.Config{}, journal.NewMetrics(), quiet), projection.NewHot(projection.Config{}, quiet)
	b := victimBook(s, jnl, hot, c)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = jnl.Run(t.Context()) }()
	go func() { _ = hot.Run(t.Context(), s.Journal()) }()
	go func() { _ = b.Run(ctx); close(ended) }()
	settled := func() bool {
		for _, l := range b.Lines() {
			if l.Leased != l.Free {
				return false
			}
		}
		return len(b.Lines()) > 0
	}
	for end := time.Now().Add(3 * time.Minute); !settled(); {
		if time.Now().After(end) {
			t.Fatalf("not settled: %+v", b.Lines())
		}
		pause := time.NewTimer(500 * time.Millisecond)
		<-pause.C
	}
	stop()
	<-ended
	judgeStore(t, j, s)
}

// killVictim kills a victim some time after it has begun, and tells which impressions
// were acknowledged.
func killVictim(t *testing.T, dir string, after time.Duration) (acknowledged []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimFolder+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "open" {
			defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		}
		if request, ok := strings.CutPrefix(lines.Text(), "told "); ok {
			acknowledged = append(acknowledged, request)
		}
	}
	_ = cmd.Wait()
	return acknowledged
}
