package config

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"deckle/internal/template"
)

// Templates holds the template of every site and follows its file while
// [Templates.Run] runs. All methods but Run may be called concurrently.
type Templates struct {
	sites  []*siteTemplate // in the order of the configuration
	byID   map[string]*siteTemplate
	reload chan struct{} // holds one token while a reload is asked for
	log    *slog.Logger
}

// A siteTemplate is one site's template and how it came to be.
type siteTemplate struct {
	site     string
	file     string
	lastGood string // path of the last good version
	defaults SiteDefaults
	log      *slog.Logger

	// cur is what every page reads; nil = no ads. A template never changes.
	cur atomic.Pointer[template.Template]

	// Owned by Watch and then by Run.
	settling settling
	judged   string             // hash of the file's content that was judged last; "" after its absence
	good     *template.Template // the last good version; nil = none
	goodHash string

	mu    sync.Mutex
	state TemplateState
	loads map[TemplateStatus]uint64 // how often each status was the outcome
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

// templateStatuses are all of them.
var templateStatuses = []TemplateStatus{TemplateOK, TemplateLastGood, TemplateDisabled, TemplateMissing, TemplateInvalid}

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
	Problems Problems  // of the file as it is now, warnings included; not to be changed
}

var (
	errNoTemplate   = errors.New("does not exist")
	errBeingWritten = errors.New("is still being written")
)

// Watch loads the template of every site; [Templates.Run] follows the files from
// then on. It never fails: what is wrong is logged and in [Templates.States]. A
// file that is being written at this moment is waited for, two seconds at most
// for all of them together.
func Watch(c *Config, log *slog.Logger) *Templates {
	t := &Templates{byID: map[string]*siteTemplate{}, reload: make(chan struct{}, 1), log: log}
	deadline := time.Now().Add(startTime)
	for i := range c.Sites {
		site := &c.Sites[i]
		s := &siteTemplate{
			site:     site.ID,
			file:     site.Templates,
			lastGood: filepath.Join(c.Store.DataDir, "templates", site.ID+".toml"),
			defaults: c.TemplateDefaults(site),
			log:      log.With("site", site.ID, "file", site.Templates),
			loads:    map[TemplateStatus]uint64{},
		}
		s.start(deadline)
		t.sites = append(t.sites, s)
		t.byID[site.ID] = s
	}
	return t
}

// startTime bounds how long the start waits for files that are being written.
const startTime = 2 * time.Second

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

// Run follows the files until ctx is done, and returns nil then. Where the
// system cannot tell of changes, it looks every two seconds.
func (t *Templates) Run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.log.WarnContext(ctx, "templates are looked at every two seconds only", "err", err)
		t.follow(ctx, nil, nil, func() {})
		return nil
	}
	defer watcher.Close()
	t.follow(ctx, watcher.Events, watcher.Errors, func() { t.watchFolders(watcher) })
	return nil
}

// pollTime is how often files are looked at although nothing was told. Network
// file systems tell nothing, a folder that is not there yet cannot be watched,
// and behind a symbolic link another one changes.
const pollTime = 2 * time.Second

// watchFolders watches those folders that are not watched: the folder and not
// the file, for a watch on a file ends at its first atomic replacement.
func (t *Templates) watchFolders(w *fsnotify.Watcher) {
	folders := map[string]bool{}
	for _, s := range t.sites {
		folders[filepath.Dir(s.file)] = true
	}
	for _, f := range w.WatchList() {
		delete(folders, f)
	}
	for _, f := range slices.Sorted(maps.Keys(folders)) {
		if err := w.Add(f); err != nil {
			t.log.Debug("folder cannot be watched yet", "folder", f, "err", err)
		}
	}
}

// follow is Run's loop: whatever wakes it, it looks at the files that may have
// changed and sleeps until the next one will have settled.
func (t *Templates) follow(ctx context.Context, events <-chan fsnotify.Event, errs <-chan error, watch func()) {
	poll := time.NewTicker(pollTime)
	defer poll.Stop()
	settled := time.NewTimer(0)
	defer settled.Stop()
	watch()
	for {
		touched := ""
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			touched = e.Name
		case err := <-errs:
			t.log.WarnContext(ctx, "watching templates", "err", err)
		case <-t.reload:
			touched = everyFile
		case <-poll.C:
			watch()
		case <-settled.C:
		}
		if again := t.inspect(touched); again > 0 {
			settled.Reset(again)
		}
	}
}

// everyFile stands for a touch of all files.
const everyFile = "*"

// inspect looks at every file, of which one may have been touched, and returns
// when to look again at the latest; 0 when nothing is pending.
func (t *Templates) inspect(touched string) (again time.Duration) {
	for _, s := range t.sites {
		left := s.inspect(time.Now(), touched == everyFile || filepath.Clean(touched) == filepath.Clean(s.file))
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
	}
	return again
}

// inspect looks at the file and does what is due.
func (s *siteTemplate) inspect(now time.Time, touched bool) (again time.Duration) {
	do, again := s.settling.see(now, look(s.file), touched)
	switch do {
	case actRead:
		return s.readFile(now)
	case actDrop:
		s.drop(now)
	}
	return again
}

// readFile reads the file that has settled; a file that has changed meanwhile
// has to settle again.
func (s *siteTemplate) readFile(now time.Time) (again time.Duration) {
	before := s.settling.last
	data, err := readFile(s.file)
	if after := look(s.file); after != before {
		_, again = s.settling.see(now, after, true)
		return again
	}
	if err != nil {
		s.judged = ""
		s.refuse(now, unreadable(s.file, err))
		return 0
	}
	s.judge(now, data)
	return 0
}

// start finds the first template: the file, if it is whole by the deadline; else
// the last good version. Without a file there is none.
func (s *siteTemplate) start(deadline time.Time) {
	s.state = TemplateState{Site: s.site, File: s.file}
	for {
		now := time.Now()
		if !look(s.file).exists {
			s.settling = settling{seen: true, since: now, acted: true}
			s.drop(now)
			return
		}
		again := s.inspect(now, false)
		if again == 0 {
			return
		}
		if now.Add(again).After(deadline) {
			s.refuse(now, unreadable(s.file, errBeingWritten))
			return
		}
		<-time.After(again)
	}
}

// judge takes the content of the file into use if it is valid.
func (s *siteTemplate) judge(now time.Time, data []byte) {
	hash := hashOf(data)
	if hash == s.judged {
		s.log.Debug("template is unchanged")
		return
	}
	s.judged = hash
	compiled, problems := parseTemplate(s.file, data, s.defaults)
	if compiled == nil {
		s.refuse(now, problems)
		return
	}
	if hash != s.goodHash {
		if err := writeLastGood(s.lastGood, data); err != nil {
			s.log.Error("a restart would not find this version of the template", "err", err)
		}
	}
	s.good, s.goodHash = compiled, hash
	status := statusOf(compiled)
	s.use(now, compiled, hash, status, problems)
	s.logProblems(problems)
	s.log.Info("template in use", "status", status, "slots", len(compiled.Slots), "hash", hash, "warnings", len(problems))
}

// statusOf says whether a valid file switches ads on.
func statusOf(t *template.Template) TemplateStatus {
	if t.Enabled && len(t.Slots) > 0 {
		return TemplateOK
	}
	return TemplateDisabled
}

// refuse goes on with the last good version because the file cannot be used; also
// after an absence that had switched ads off, for the file is there again.
func (s *siteTemplate) refuse(now time.Time, problems Problems) {
	if s.good == nil {
		s.restore()
	}
	if s.good == nil {
		s.use(now, nil, "", TemplateInvalid, problems)
		s.logProblems(problems)
		s.log.Error("template is invalid and there is no last good version: no ads")
		return
	}
	s.use(now, s.good, s.goodHash, TemplateLastGood, problems)
	s.logProblems(problems)
	s.log.Error("template is invalid: its last good version is in use", "hash", s.goodHash)
}

// logProblems writes a line for each problem, up to a bound.
func (s *siteTemplate) logProblems(problems Problems) {
	const most = 20
	for i, p := range problems {
		if i == most {
			s.log.Error("and more problems in the template", "more", len(problems)-most)
			return
		}
		level := slog.LevelWarn
		if p.Severity == Error {
			level = slog.LevelError
		}
		s.log.Log(context.Background(), level, "problem in the template", "err", p.String())
	}
}

// restore finds the last good version of an earlier process.
func (s *siteTemplate) restore() {
	data, err := readLastGood(s.lastGood)
	if err != nil {
		if !errors.Is(err, errNoLastGood) {
			s.log.Error("the last good version of the template cannot be used", "err", err)
		}
		return
	}
	compiled, problems := parseTemplate(s.lastGood, data, s.defaults)
	if compiled == nil {
		s.logProblems(problems)
		s.log.Error("the last good version of the template is not valid any more")
		return
	}
	s.good, s.goodHash = compiled, hashOf(data)
}

// drop switches ads off because there is no file.
func (s *siteTemplate) drop(now time.Time) {
	s.judged = ""
	s.use(now, nil, "", TemplateMissing, unreadable(s.file, errNoTemplate))
	s.log.Error("template is missing: no ads")
}

// use gives pages a template, or none, and says why.
func (s *siteTemplate) use(now time.Time, t *template.Template, hash string, status TemplateStatus, problems Problems) {
	if t != nil && statusOf(t) == TemplateDisabled {
		t = nil
	}
	s.cur.Store(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Status != status {
		s.state.Since = now
	}
	s.state.Status, s.state.Hash, s.state.Problems, s.state.Slots = status, hash, problems, 0
	if t != nil {
		s.state.Slots = len(t.Slots)
	}
	s.loads[status]++
}
