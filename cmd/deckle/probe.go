package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"deckle"
	"deckle/internal/auction"
	"deckle/internal/config"
	"deckle/internal/prebid"
)

// A prober asks a Prebid Server for slots, one at a time: it refuses a whole page's
// request for one of them that it does not know.
type prober struct {
	dialect *prebid.Dialect
	timeout time.Duration
	asked   map[string]bool // what has been asked for, by the body of its request
}

// probeFiles probes the sites of those files that are a deckle.toml, and returns how
// many slots were refused.
func probeFiles(ctx context.Context, out io.Writer, files []string) (refused int, err error) {
	probed := false
	for _, file := range files {
		cfg, problems := config.Load(file)
		if len(problems.Errors()) > 0 || cfg == nil || !slices.Contains(cfg.Auction.Providers, "prebid") {
			continue // a template file, or one that asks nobody
		}
		probed = true
		p := &prober{
			dialect: prebid.New(prebid.Config{ServerURL: cfg.Integrations.Prebid.ServerURL, AccountID: cfg.Integrations.Prebid.AccountID}),
			timeout: 10 * time.Second, // nobody waits for a page
			asked:   map[string]bool{},
		}
		for i := range cfg.Sites {
			n, err := p.site(ctx, out, &cfg.Sites[i], cfg.TemplateDefaults(&cfg.Sites[i]))
			if refused += n; err != nil {
				return refused, err
			}
		}
	}
	if !probed {
		return 0, errors.New("-probe needs a deckle.toml with prebid among [auction].providers")
	}
	return refused, nil
}

// site asks for every slot of a site.
func (p *prober) site(ctx context.Context, out io.Writer, s *config.Site, d config.SiteDefaults) (refused int, err error) {
	t, _ := config.LoadTemplate(s.Templates, d)
	if t == nil {
		return 0, nil // has been said: the site has no ads
	}
	for i := range t.Slots {
		why := p.slot(ctx, s, &t.Slots[i])
		if why == nil {
			continue
		}
		refused++
		if _, err := fmt.Fprintf(out, "%s: slot %s: %v\n", s.ID, t.Slots[i].ID, why); err != nil {
			return refused, err
		}
	}
	return refused, nil
}

// slot asks for one slot, unless just that has been asked for. An error says why
// pages cannot have it.
func (p *prober) slot(ctx context.Context, s *config.Site, slot *deckle.Slot) error {
	one := *slot
	one.ID, one.GAMUnitPath, one.Targeting = "probe", "", nil // two slots may share a stored request
	r := &auction.Request{
		ID: "deckle-check", Test: true, Slots: []deckle.Slot{one}, Currency: s.Currency,
		Site: auction.Site{ID: s.ID, Domain: s.Hosts[0], Page: "https://" + s.Hosts[0] + "/", SChain: s.SChain, BAdv: s.BAdv, BCat: s.BCat},
	}
	call, err := p.dialect.Encode(r, p.timeout)
	if err != nil || call == nil || p.asked[string(call.Body)] {
		return err // nil for a slot that Prebid Server is not asked for
	}
	p.asked[string(call.Body)] = true
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		return err
	}
	req.Header = call.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
	return fmt.Errorf("answer %d of Prebid Server: %q", resp.StatusCode, strings.TrimSpace(string(text)))
}
