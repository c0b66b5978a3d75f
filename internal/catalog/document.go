package catalog

import "context"

// A Document is a whole catalog, or a part of one, as one JSON value.
type Document struct {
	Publishers  []*Publisher  `json:"publishers,omitempty"`
	Sites       []*Site       `json:"sites,omitempty"`
	Advertisers []*Advertiser `json:"advertisers,omitempty"`
	Campaigns   []*Campaign   `json:"campaigns,omitempty"`
	Creatives   []*Creative   `json:"creatives,omitempty"`

	// Approvals are decisions on the versions of the creatives as the document has
	// them.
	Approvals []DocumentApproval `json:"approvals,omitempty"`

	// Delete names what is to be removed: "campaign/spring".
	Delete []string `json:"delete,omitempty"`
}

// A DocumentApproval approves or rejects a creative of the document on a site.
type DocumentApproval struct {
	Site     string `json:"site"`
	Creative string `json:"creative"`
	State    State  `json:"state"` // approved, rejected
}

// A Diff is what a document would change, in the order in which it is applied.
type Diff struct {
	Steps []Step `json:"steps"`
}

// A Step is one entity of a [Diff].
type Step struct {
	Key    string `json:"key"`  // "campaign/spring", "approval/yuki-site/ryokan-magazine-001"
	What   string `json:"what"` // create, update, delete, approve, reject
	Fields []Edit `json:"fields,omitempty"`
}

// Empty reports whether there is nothing to do.
func (d *Diff) Empty() bool { return len(d.Steps) == 0 }

// DecodeDocument reads a document strictly; its error is an [*InvalidError].
func DecodeDocument(data []byte) (*Document, error) { return nil, nil }

// Import validates a document as a whole against the catalog and says what it
// would change. It writes nothing.
func (c *Catalog) Import(d *Document) (*Diff, error) { return nil, nil }

// Apply writes what a [Diff] says, parents before children, approvals last. Every
// step is durable before a child of it is written; what has been changed since the
// diff was made is a [*ConflictError], and applying the document again does what
// is left. It returns how many steps are done.
func (c *Catalog) Apply(ctx context.Context, d *Diff, by string) (done int, err error) { return 0, nil }

// Export is the catalog as a document, without tombstones. Importing it changes
// nothing.
func (s *Snapshot) Export() *Document { return nil }
