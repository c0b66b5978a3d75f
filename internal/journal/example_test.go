package journal_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"deckle/internal/journal"
	"deckle/internal/store/memory"
)

// What happened is told, and then read by whoever counts.
func Example() {
	log := memory.NewLog() // or that of a store.Store
	j := journal.New(log, journal.Config{}, journal.NewMetrics(), slog.Default())
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(running) }()

	seq, err := j.Append(context.Background(), journal.Event{
		Kind: journal.Click, At: time.Now(),
		Site: "garden", Slot: "sidebar-1", Advertiser: "adv-1", Campaign: "camp-1", Creative: "mag-1", Version: 1,
		URL: "https://garden.example/roses", RequestID: "5f58f22dc9ffcbbd",
	})
	fmt.Println("durable at", seq, err)
	stop() // commits what waits
	fmt.Println("ended", <-ended)

	reading, enough := context.WithCancel(context.Background())
	err = journal.Read(reading, log, 0, func(records []journal.Record) error {
		for _, r := range records {
			fmt.Println(r.Seq, r.Index, r.Kind, r.Campaign, r.ID())
		}
		enough()
		return nil
	})
	fmt.Println("read", err)
	// Output:
	// durable at 1 <nil>
	// ended <nil>
	// 1 0 click camp-1 03f6c8dc3ecb384e5a21e5f66b0f76f0
	// read <nil>
}
