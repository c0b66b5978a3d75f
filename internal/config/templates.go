package config

import (
	"sync"
	"sync/atomic"
	"time"

	"deckle/internal/template"
)

// Templates holds the template of every site and follows its file while
// [Templates.Run] runs. All methods may be called concurrently.
type Templates struct {
	sites  []*siteTemplate // in the order of the configuration
	byID   map[string]*siteTemplate
	reload chan struct{} // holds one token while a reload is asked for
}

// A siteTemplate is one site's template and how it came to be.
type siteTemplate struct {
	// cur is what every page reads; nil = no ads. A template never changes.
	cur atomic.Pointer[template.Template]

	mu    sync.Mutex
	state TemplateState
}

// A TemplateStatus says where a site's template comes from. It is a metric's
// label.
type TemplateStatus string

const (
	TemplateOK       TemplateStatus = "ok"          // the file
	TemplateLastGood TemplateStatus = "last_good"   // the last version that was valid; the file is not
	TemplateDisabled TemplateStatus = "disabled"    // the file switches ads off: enabled = false, or no slots
	TemplateMissing  TemplateStatus = "off_missing" // no file, no ads
	TemplateInvalid  TemplateStatus = "off_invalid" // the file is invalid and there never was a good one; no ads
)

// Healthy reports whether the site has the template that its file asks for.
func (s TemplateStatus) Healthy() bool { return s == TemplateOK || s == TemplateDisabled }

// A TemplateState is what is to be said about one site's template.
type TemplateState struct {
	Site     string
	File     string
	Status   TemplateStatus
	Since    time.Time // of Status
	Hash     string    // SHA-256 in hexadecimal of the version in use; "" = none
	Slots    int       // of the version in use; 0 = ads are off
	Problems Problems  // of the file as it is now, warnings included
}

// For returns the template in use for a site, or nil when its ads are off. It
// takes no lock.
func (t *Templates) For(site string) *template.Template {
	s, ok := t.byID[site]
	if !ok {
		return nil
	}
	return s.cur.Load()
}

// Reload makes Run read every file again, as SIGHUP asks for. It does not wait.
func (t *Templates) Reload() {
	select {
	case t.reload <- struct{}{}:
	default: // one is asked for already
	}
}

// States says for every site, in the order of the configuration, where its
// template comes from.
func (t *Templates) States() []TemplateState {
	states := make([]TemplateState, len(t.sites))
	for i, s := range t.sites {
		s.mu.Lock()
		states[i] = s.state
		s.mu.Unlock()
	}
	return states
}
