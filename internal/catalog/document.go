package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"deckle/internal/store"
)

// A Document is a whole catalog, or a part of one, as one JSON value. What it does
// not name stays as it is.
type Document struct {
	Publishers  []*Publisher  `json:"publishers,omitempty"`
	Sites       []*Site       `json:"sites,omitempty"`
	Advertisers []*Advertiser `json:"advertisers,omitempty"`
	Campaigns   []*Campaign   `json:"campaigns,omitempty"`
	Creatives   []*Creative   `json:"creatives,omitempty"`

	// Approvals are decisions, made by hand, on the creatives as the document leaves
	// them. They make no trust anchors: a document approves what it has, and nothing
	// that is still to come.
	Approvals []DocumentApproval `json:"approvals,omitempty"`

	// Tombstones are deleted entities that others of the document refer to. One that the
	// catalog has never held is put there as a tombstone; one that it has stays as it
	// is, living or not.
	Tombstones Tombstones `json:"tombstones,omitzero"`

	// Delete names what is to be removed: "campaign/spring". What is gone already is
	// passed over.
	Delete []string `json:"delete,omitempty"`
}

// Tombstones are those of a [Document].
type Tombstones struct {
	Publishers  []*Publisher  `json:"publishers,omitempty"`
	Sites       []*Site       `json:"sites,omitempty"`
	Advertisers []*Advertiser `json:"advertisers,omitempty"`
	Campaigns   []*Campaign   `json:"campaigns,omitempty"`
}

// A DocumentApproval approves or rejects the present version of a creative on a
// site. Pending leaves it to a person: it is not approved by itself. What has been
// decided already is not undone by that.
type DocumentApproval struct {
	Site     string `json:"site"`
	Creative string `json:"creative"`
	State    State  `json:"state"` // approved, rejected, pending
}

// A Diff is what a document would change, in the order in which it is applied.
type Diff struct {
	Steps []Step `json:"steps"`
}

// A Step is one change of a [Diff].
type Step struct {
	Key    string `json:"key"`  // "campaign/spring", "approval/yuki-site/ryokan-magazine-001"
	What   string `json:"what"` // create, update, restore, entomb, delete, approve, reject, wait
	Fields []Edit `json:"fields,omitempty"`

	entity   Entity // of a write
	base     Record // what it replaces
	graves   graves
	approval DocumentApproval
	content  string     // hash of what is decided on
	campaign string     // of what is decided on
	decided  uint64     // revision of the approvals
	byHand   []Approval // those of them that a person has decided
}

// What a step does.
const (
	stepCreate  = "create"
	stepUpdate  = "update"
	stepRestore = "restore"
	stepEntomb  = "entomb"
	stepDelete  = "delete"
	stepApprove = "approve"
	stepReject  = "reject"
	stepWait    = "wait"
)

// Empty reports whether there is nothing to do.
func (d *Diff) Empty() bool { return len(d.Steps) == 0 }

// writers is how many writes are under way at once.
const writers = 16

// DecodeDocument reads a document strictly; its error is an [*InvalidError].
func DecodeDocument(data []byte) (*Document, error) {
	d := &Document{}
	return d, decode(data, d, MaxDocumentBytes)
}

// A part is one entity of a document with its place.
type part struct {
	Entity
	field  string
	buried bool // a tombstone
}

// parts are the entities of a document, parents before children.
func (d *Document) parts() []part {
	var out []part
	t := &d.Tombstones
	out = appendParts(out, "publishers", d.Publishers, t.Publishers)
	out = appendParts(out, "sites", d.Sites, t.Sites)
	out = appendParts(out, "advertisers", d.Advertisers, t.Advertisers)
	out = appendParts(out, "campaigns", d.Campaigns, t.Campaigns)
	return appendParts(out, "creatives", d.Creatives, nil)
}

func appendParts[E Entity](parts []part, list string, living, buried []E) []part {
	for i, e := range living {
		parts = append(parts, part{e, fmt.Sprintf("%s[%d]", list, i), false})
	}
	for i, e := range buried {
		parts = append(parts, part{e, fmt.Sprintf("tombstones.%s[%d]", list, i), true})
	}
	return parts
}

// Import validates a document as a whole against the catalog and says what it would
// change. It writes nothing. Errors: [*InvalidError], [ErrNotLoaded].
func (c *Catalog) Import(d *Document) (*Diff, error) {
	s := c.Snapshot()
	if !s.Loaded() {
		return nil, fmt.Errorf("import document: %w", ErrNotLoaded)
	}
	im := importing{c: c, s: s, next: map[string]Entity{}, buried: map[string]Entity{}, deleted: map[string]bool{}, diff: &Diff{}}
	im.collect(d)
	im.judge(d.parts())
	im.decide(d.Approvals)
	im.refusalsFirst()
	im.remove(d.Delete)
	if err := im.problems.err(); err != nil {
		return nil, err
	}
	return im.diff, nil
}

// An importing is a document on its way to a diff.
type importing struct {
	c        *Catalog
	s        *Snapshot
	problems problems

	next    map[string]Entity // by key: what the document has
	buried  map[string]Entity // by key: its tombstones
	deleted map[string]bool   // by key: what it deletes
	diff    *Diff
}

// collect finds what the document has, and what is in it twice.
func (im *importing) collect(d *Document) {
	for _, p := range d.parts() {
		at := key(p.Kind(), p.EntityID())
		if im.next[at] != nil || im.buried[at] != nil {
			im.problems.add(p.field+".id", "", "%s is in the document twice", quote(p.EntityID()))
		}
		if p.buried {
			im.buried[at] = p.Entity
		} else {
			im.next[at] = p.Entity
		}
	}
	for i, at := range d.Delete {
		if im.next[at] != nil || im.buried[at] != nil {
			im.problems.add(fmt.Sprintf("delete[%d]", i), "", "%s is in the document as well", quote(at))
		}
		im.deleted[at] = true
	}
}

// find is what the catalog has of an entity once the document is applied. What the
// document itself deletes nothing in it may refer to.
func (im *importing) find(k Kind, id string) (e Entity, living bool) {
	at := key(k, id)
	r := im.s.records[k][id]
	switch {
	case im.next[at] != nil && !im.deleted[at]:
		return im.next[at], true
	case r == nil:
		return im.buried[at], false
	case im.deleted[at] && !r.Deleted:
		return nil, false
	}
	return r.Entity, !r.Deleted
}

// judge judges each entity as it will be when its turn comes: a publisher is written
// while its present sites and advertisers are still there.
func (im *importing) judge(parts []part) {
	for _, p := range parts {
		base, known := im.s.Record(p.Kind(), p.EntityID())
		if p.buried && known {
			continue
		}
		w := world{
			Config: &im.c.config, find: im.find, hasChildren: im.s.hasChildren, old: base.Entity, restores: base.Deleted,
			graves: graves{p.buried, im.buried},
		}
		next, err := im.c.prepare(p.Entity, base, w, Write{})
		if invalid, ok := errors.AsType[*InvalidError](err); ok {
			for _, problem := range invalid.Problems {
				im.problems.add(join(p.field, problem.Field), problem.Remedy, "%s", problem.Msg)
			}
			im.problems.more += invalid.More
			continue
		}
		im.plan(p, base, next, w.graves)
	}
}

// plan adds the step of an entity that has been judged, of which what comes later has
// the normal form. next is nil where it is as it should be.
func (im *importing) plan(p part, base Record, next *Record, g graves) {
	at := key(p.Kind(), p.EntityID())
	if next == nil {
		im.next[at] = base.Entity
		return
	}
	change := next.History[len(next.History)-1]
	what := map[string]string{"created": stepCreate, "updated": stepUpdate, "restored": stepRestore, "deleted": stepDelete}[change.What]
	if p.buried {
		im.buried[at], what = next.Entity, stepEntomb
	} else {
		im.next[at] = next.Entity
	}
	im.diff.Steps = append(im.diff.Steps, Step{Key: at, What: what, Fields: change.Fields, entity: p.Entity, base: base, graves: g})
}

// hasChildren reports whether a publisher will have sites or advertisers.
func (im *importing) hasChildren(publisher string) bool {
	for _, k := range []Kind{KindSite, KindAdvertiser} {
		for _, id := range im.s.Children(k, publisher) {
			if !im.deleted[key(k, id)] {
				return true
			}
		}
	}
	for at, e := range im.next {
		if parentOf(e) == publisher && (e.Kind() == KindSite || e.Kind() == KindAdvertiser) && !im.deleted[at] {
			return true
		}
	}
	return false
}

// decide finds the decisions that are not as the document has them.
func (im *importing) decide(approvals []DocumentApproval) {
	seen := map[pair]bool{}
	var left []Step // what the campaign refuses already
	for i, a := range approvals {
		p := im.problems.below(fmt.Sprintf("approvals[%d]", i))
		_, onSite := im.find(KindSite, a.Site)
		e, living := im.find(KindCreative, a.Creative)
		creative, _ := e.(*Creative)
		p.reference("site", KindSite, a.Site, onSite)
		p.reference("creative", KindCreative, a.Creative, living)
		what := map[State]string{Approved: stepApprove, Rejected: stepReject, Pending: stepWait}[a.State]
		if what == "" {
			p.add("state", "approved, rejected or pending", "%s is not a state", quote(string(a.State)))
		}
		at := pair{a.Site, a.Creative}
		if seen[at] {
			p.add("", "", "the decision on %q on %q is in the document twice", a.Creative, a.Site)
		}
		seen[at] = true
		if !living || creative.Status == Deleted {
			continue
		}
		if base, _ := im.s.Record(KindCreative, a.Creative); a.State == Approved && creative.Campaign == "" && base.owner == "" {
			problem := unowned("creative", a.Creative)
			p.add(problem.Field, problem.Remedy, "%s", problem.Msg)
		}
		present := im.s.Approvals(a.Site, a.Creative)
		step := Step{
			Key: approvalKey(a.Site, a.Creative), What: what, approval: a, content: creative.hash(),
			campaign: creative.Campaign, decided: present.Revision, byHand: byHand(present.Decisions),
		}
		switch state := present.State(creative.Version); {
		case a.State != Pending && state == a.State, a.State == Pending && state != Pending:
		case a.State != Pending:
			im.diff.Steps = append(im.diff.Steps, step)
		case im.s.approvals[a.Site][a.Creative].refuses(step.content):
		case im.s.trust[pair{a.Site, creative.Campaign}].refuses(step.content):
			left = append(left, step)
		default:
			im.diff.Steps = append(im.diff.Steps, step)
		}
	}
	im.leave(left)
}

// leave adds the steps that leave to a person what the campaign refuses already, where
// the document itself ends that: what it approves the campaign refuses no longer.
func (im *importing) leave(steps []Step) {
	type content struct{ site, campaign, hash string }
	approved := map[content]bool{}
	for _, s := range im.diff.Steps {
		if s.What == stepApprove {
			approved[content{s.approval.Site, s.campaign, s.content}] = true
		}
	}
	for _, s := range steps {
		if approved[content{s.approval.Site, s.campaign, s.content}] {
			im.diff.Steps = append(im.diff.Steps, s)
		}
	}
}

// refusalsFirst puts what is approved behind what is not. An approval makes its content
// fit for the whole campaign, also that of a creative which the document rejects or
// leaves to a person; that one has to say so of itself by then.
func (im *importing) refusalsFirst() {
	slices.SortStableFunc(im.diff.Steps, func(a, b Step) int { return rank(a) - rank(b) })
}

func rank(s Step) int {
	switch s.What {
	case stepReject, stepWait:
		return 1
	case stepApprove:
		return 2
	}
	return 0
}

// remove puts what is deleted at the end, children before parents.
func (im *importing) remove(keys []string) {
	for i, at := range keys {
		kind, id, _ := strings.Cut(at, "/")
		field := fmt.Sprintf("delete[%d]", i)
		if newEntity(Kind(kind)) == nil {
			im.problems.add(field, `kind/id, such as "campaign/spring"`, "%s is not an entity", quote(at))
			continue
		}
		if Kind(kind) == KindPublisher && im.hasChildren(id) {
			im.problems.add(field, "delete them as well", "%q has sites or advertisers", id)
		}
	}
	kinds := Kinds()
	slices.Reverse(kinds)
	for _, k := range kinds {
		for _, at := range slices.Compact(slices.Sorted(slices.Values(keys))) {
			kind, id, _ := strings.Cut(at, "/")
			if base, ok := im.s.Record(k, id); ok && Kind(kind) == k && !base.Deleted {
				im.diff.Steps = append(im.diff.Steps, Step{Key: at, What: stepDelete, base: base})
			}
		}
	}
}

// Apply writes what a diff says: parents before children, then what is not approved,
// then approvals, then what is deleted. Each of these waves is durable before the next begins. It returns how
// many steps are done. What somebody else has changed since the diff was made is a
// [*ConflictError]; when that is seen before the first write, nothing is written.
//
// A crash, a lost race or a store that fails leaves a valid catalog in which a part
// of the document is applied. Importing the document again gives the rest.
func (c *Catalog) Apply(ctx context.Context, d *Diff, by string) (done int, err error) {
	if err := (Write{By: by}).check(); err != nil {
		return 0, err
	}
	if err := c.unchanged(d); err != nil {
		return 0, err
	}
	if err := c.refuse(ctx, d, by); err != nil {
		return 0, fmt.Errorf("apply document: %w", err)
	}
	for rest := d.Steps; len(rest) > 0; {
		wave := 1
		for wave < len(rest) && rest[wave].wave() == rest[0].wave() {
			wave++
		}
		n, err := c.applyWave(ctx, rest[:wave], by)
		done += n
		if err != nil {
			return done, fmt.Errorf("apply document, %d of %d steps done: %w", done, len(d.Steps), err)
		}
		rest = rest[wave:]
	}
	return done, nil
}

// refuse notes what a diff rejects or leaves to a person before anything of it is
// there: while the rest is applied, no site or trust anchor approves it. Each creative
// has its own note, of which a campaign may have any number.
func (c *Catalog) refuse(ctx context.Context, d *Diff, by string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	for i := range d.Steps {
		if s := &d.Steps[i]; s.What == stepReject || s.What == stepWait {
			g.Go(func() error {
				if ctx.Err() != nil {
					return nil // the first error stops what has not begun
				}
				return persist(ctx, func(bool) error { return c.refuseStep(ctx, s, by) })
			})
		}
	}
	return g.Wait()
}

// refuseStep notes the content of one step, unless somebody has decided since the diff
// was made: the step itself finds out.
func (c *Catalog) refuseStep(ctx context.Context, s *Step, by string) error {
	d := deciding{pair: pair{s.approval.Site, s.approval.Creative}, content: s.content}
	for {
		now, err := c.readApprovals(ctx, d.pair)
		if err != nil {
			return err
		}
		if now.refuses(s.content) || !s.stillAsDecided(now.Decisions) {
			return nil
		}
		d.approvals = now
		_, err = c.writeApprovals(ctx, d, now.left(s.content, Change{At: c.now(), By: by, What: "left a content to a person"}), Write{Revision: now.revision})
		if !errors.Is(err, ErrConflict) {
			return err
		}
	}
}

// byHand are those of some decisions that a person has made.
func byHand(decisions []Approval) []Approval {
	return slices.DeleteFunc(slices.Clone(decisions), func(d Approval) bool { return d.Via != ByHand })
}

// stillAsDecided reports whether nobody has decided since the diff was made; what
// has been approved without a person is no news to a decision by hand.
func (s *Step) stillAsDecided(now []Approval) bool {
	return slices.EqualFunc(byHand(now), s.byHand, func(a, b Approval) bool {
		return a.Version == b.Version && a.State == b.State && a.Content == b.Content
	})
}

// unchanged compares the revisions that a diff is based on with the snapshot.
func (c *Catalog) unchanged(d *Diff) error {
	s := c.Snapshot()
	for i := range d.Steps {
		step := &d.Steps[i]
		if step.isApproval() {
			if a := s.Approvals(step.approval.Site, step.approval.Creative); a.Revision > step.decided && !step.stillAsDecided(a.Decisions) {
				return &ConflictError{Kind: approvalPrefix, ID: a.Site + "/" + a.Creative, Revision: a.Revision}
			}
			continue
		}
		kind, id, _ := strings.Cut(step.Key, "/")
		if now, _ := s.Record(Kind(kind), id); now.Revision > step.base.Revision {
			return conflict(Kind(kind), id, now)
		}
	}
	return nil
}

// wave is what a step is applied together with.
func (s *Step) wave() string {
	prefix, _, _ := strings.Cut(s.Key, "/")
	if s.What == stepDelete || s.What == stepApprove {
		return s.What + " " + prefix
	}
	return prefix
}

func (s *Step) isApproval() bool {
	return s.What == stepApprove || s.What == stepReject || s.What == stepWait
}

func (c *Catalog) applyWave(ctx context.Context, steps []Step, by string) (done int, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(writers)
	finished := make([]bool, len(steps))
	for i := range steps {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil // the first error stops what has not begun
			}
			err := c.applyStep(ctx, &steps[i], by)
			finished[i] = err == nil
			return err
		})
	}
	err = g.Wait()
	for _, ok := range finished {
		if ok {
			done++
		}
	}
	return done, err
}

// A step that the store has not answered is tried again, five times within three
// seconds: among ten thousand writes one may well be slow.
const (
	stepTries = 5
	stepAgain = 100 * time.Millisecond // doubled each time
)

func (c *Catalog) applyStep(ctx context.Context, s *Step, by string) error {
	return persist(ctx, func(again bool) error {
		err := c.tryStep(ctx, s, by)
		lost, ok := errors.AsType[*ConflictError](err)
		switch {
		case !ok || !again:
			return err
		case c.isDone(ctx, s):
			return nil // by the try whose answer was lost
		case s.halfDone(lost, by):
			return c.finishCurrency(ctx, s, lost.Revision, by)
		}
		return err
	})
}

// halfDone reports whether a conflict is with our own tombstone of a publisher that is
// given another currency.
func (s *Step) halfDone(lost *ConflictError, by string) bool {
	if s.What != stepUpdate || lost.Kind != KindPublisher || lost.Current == nil || !lost.Current.Deleted {
		return false
	}
	last := lost.Current.History[len(lost.Current.History)-1]
	return last.By == by && last.What == "deleted" && same(lost.Current.Entity, s.base.Entity)
}

// finishCurrency puts a publisher back with its new currency, unless something has come
// to be below it before it was deleted.
func (c *Catalog) finishCurrency(ctx context.Context, s *Step, tombstone uint64, by string) error {
	w := Write{By: by, Revision: tombstone}
	if _, err := c.Delete(ctx, KindPublisher, s.entity.EntityID(), w); err != nil {
		return err
	}
	_, err := c.put(ctx, s.entity, w, s.graves)
	return err
}

// persist calls write until the store has answered, and tells it when it is called
// again.
func persist(ctx context.Context, write func(again bool) error) error {
	for try := 0; ; try++ {
		err := write(try > 0)
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrFull) || try == stepTries-1 {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(stepAgain << try):
		}
	}
}

// isDone reports whether the catalog says already what a write would say.
func (c *Catalog) isDone(ctx context.Context, s *Step) bool {
	if s.entity == nil {
		return false
	}
	current, err := c.Get(ctx, s.entity.Kind(), s.entity.EntityID())
	if err != nil {
		return false
	}
	j := judge{ctx: ctx, c: c}
	next, err := c.prepare(s.entity, current, j.world(current, s.graves), Write{})
	return err == nil && j.err == nil && next == nil
}

func (c *Catalog) tryStep(ctx context.Context, s *Step, by string) error {
	w := Write{By: by, Revision: s.base.Revision}
	kind, id, _ := strings.Cut(s.Key, "/")
	var err error
	switch {
	case s.isApproval():
		err = c.applyApproval(ctx, s, by)
	case s.entity == nil:
		_, err = c.Delete(ctx, Kind(kind), id, w)
	default:
		_, err = c.put(ctx, s.entity, w, s.graves)
	}
	return err
}

// applyApproval decides on the very content that the document has, as often as an
// automatic approval is faster.
func (c *Catalog) applyApproval(ctx context.Context, s *Step, by string) error {
	for {
		now, err := c.readApprovals(ctx, pair{s.approval.Site, s.approval.Creative})
		if err != nil {
			return err
		}
		revision, still := s.decided, s.stillAsDecided(now.Decisions)
		if still {
			revision = now.revision
		}
		err = c.tryApproval(ctx, s, Write{By: by, Revision: revision})
		lost, ok := errors.AsType[*ConflictError](err)
		if !still || !ok || lost.Kind != approvalPrefix {
			return err
		}
	}
}

func (c *Catalog) tryApproval(ctx context.Context, s *Step, w Write) error {
	creative, err := c.Get(ctx, KindCreative, s.approval.Creative)
	if err != nil {
		return err
	}
	if creative.content != s.content {
		return conflict(KindCreative, s.approval.Creative, creative)
	}
	decide := c.approve
	switch s.What {
	case stepReject:
		decide = c.Reject
	case stepWait:
		decide = c.leave
	}
	_, err = decide(ctx, s.approval.Site, s.approval.Creative, creative.Entity.(*Creative).Version, w)
	return err
}

// Export is the catalog as a document, with the tombstones that something in it refers
// to. A site or an advertiser whose publisher is one sells nothing, and counts as one as
// well: only a crash leaves it. Importing it changes nothing; and into an empty catalog it gives one that exports
// the same, but for the versions of creatives, which begin at 1 again, and that more may
// be left to a person: what is rejected there is so in the campaign that the creative is
// in now, whichever it was in before, and whatever has been approved in it since.
//
// Of the approvals it has those of present versions: where an older version is shown
// while the present one waits, the document has neither. Nor has it trust anchors, or
// the approvals of creatives that are in no campaign. So what an import leaves out is
// asked of a person again, and nothing is approved that was not.
func (s *Snapshot) Export() *Document {
	d := &Document{
		Publishers: all[*Publisher](s, KindPublisher), Sites: all[*Site](s, KindSite),
		Advertisers: all[*Advertiser](s, KindAdvertiser), Campaigns: all[*Campaign](s, KindCampaign),
		Creatives: all[*Creative](s, KindCreative),
	}
	for _, site := range d.Sites {
		for _, creative := range d.Creatives {
			state := s.Approvals(site.ID, creative.ID).State(creative.Version)
			content := s.records[KindCreative][creative.ID].content
			if state == Approved && creative.Campaign == "" || state == Pending && !s.refuses(site.ID, creative.ID, creative.Campaign, content) {
				continue
			}
			d.Approvals = append(d.Approvals, DocumentApproval{Site: site.ID, Creative: creative.ID, State: state})
		}
	}
	d.Tombstones = s.referredTombstones(d)
	return d
}

// referredTombstones are those that a document's entities refer to, directly or by
// way of another one of them.
func (s *Snapshot) referredTombstones(d *Document) Tombstones {
	referred := map[Kind]map[string]bool{}
	for _, k := range Kinds() {
		referred[k] = map[string]bool{}
	}
	var follow func(e Entity)
	follow = func(e Entity) {
		for k, ids := range references(e) {
			for _, id := range ids {
				if r := s.records[k][id]; r != nil && (r.Deleted || s.orphaned(r.Entity)) && !referred[k][id] {
					referred[k][id] = true
					follow(r.Entity)
				}
			}
		}
	}
	for _, p := range d.parts() {
		follow(p.Entity)
	}
	return Tombstones{
		Publishers: these[*Publisher](s, referred[KindPublisher]), Sites: these[*Site](s, referred[KindSite]),
		Advertisers: these[*Advertiser](s, referred[KindAdvertiser]), Campaigns: these[*Campaign](s, referred[KindCampaign]),
	}
}

// references are the ids of what an entity refers to, by their kind.
func references(e Entity) map[Kind][]string {
	switch e := e.(type) {
	case *Site:
		return map[Kind][]string{KindPublisher: {e.Publisher}}
	case *Advertiser:
		return map[Kind][]string{KindPublisher: {e.Publisher}}
	case *Campaign:
		return map[Kind][]string{KindAdvertiser: {e.Advertiser}, KindSite: e.Sites}
	case *Creative:
		return map[Kind][]string{KindCampaign: {e.Campaign}}
	}
	return nil
}

// these are the tombstones of some ids, in the order of the ids.
func these[E Entity](s *Snapshot, ids map[string]bool) []E {
	var out []E
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		var of E
		out = append(out, s.records[of.Kind()][id].Entity.(E))
	}
	return out
}

// orphaned reports whether an entity's publisher has been deleted.
func (s *Snapshot) orphaned(e Entity) bool {
	if e.Kind() != KindSite && e.Kind() != KindAdvertiser {
		return false
	}
	_, ok := s.Publisher(parentOf(e))
	return !ok
}

// all are the living entities of a kind, in the order of their ids, without orphans.
func all[E Entity](s *Snapshot, k Kind) []E {
	var out []E
	for _, id := range s.ids[k]() {
		if e, ok := living[E](s, k, id); ok && !s.orphaned(e) {
			out = append(out, e)
		}
	}
	return out
}
