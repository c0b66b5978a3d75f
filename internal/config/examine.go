package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Examine reads files as `deckle check` does: each may be a deckle.toml, whose
// sites' template files are read as well, or a template file, told apart by what
// is in them. It returns what is to be said of all of them, file by file.
func Examine(paths ...string) Problems {
	e := examination{seen: map[string]bool{}}
	for _, path := range paths {
		e.file(path)
	}
	return e.problems
}

// An examination collects what is wrong with some files; each is read once.
type examination struct {
	seen     map[string]bool
	problems Problems
}

func (e *examination) file(path string) {
	if !e.first(path) {
		return
	}
	data, err := readFile(path)
	if err != nil {
		e.problems = append(e.problems, unreadable(path, err)...)
		return
	}
	if isTemplate(path, data) {
		_, problems := parseTemplate(path, data, SiteDefaults{})
		e.problems = append(e.problems, problems...)
		return
	}
	c, d := parse(path, data)
	missing := missingTemplates(c, d)
	if c.Consent.UnknownPlace == "gdpr" && !c.Consent.PlaceKnown() {
		d.problems = append(d.problems, Problem{Severity: Note, File: path, Key: "consent.unknown_place", Msg: "is gdpr and no place can be known: only readers with a TC string get exchange ads"})
	}
	d.problems.sort()
	e.problems = append(e.problems, d.problems...)
	for i := range c.Sites {
		s := &c.Sites[i]
		if missing[s.Templates] || !e.first(s.Templates) {
			continue
		}
		_, problems := LoadTemplate(s.Templates, c.TemplateDefaults(s))
		e.problems = append(e.problems, problems...)
	}
}

// first reports whether a file has not been examined yet.
func (e *examination) first(path string) bool {
	key := path
	if abs, err := filepath.Abs(path); err == nil {
		key = abs
	}
	if e.seen[key] {
		return false
	}
	e.seen[key] = true
	return true
}

// missingTemplates warns of the template files that are not there, which is no
// error: their sites are served without ads.
func missingTemplates(c *Config, d *document) map[string]bool {
	missing := map[string]bool{}
	for i := range c.Sites {
		file := c.Sites[i].Templates
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		missing[file] = true
		path := fmt.Sprintf("site[%d].templates", i)
		d.warnf(d.at(path), path, "write the file", "%s does not exist: the site would have no ads", file)
	}
	return missing
}

// isTemplate tells a template file from a deckle.toml by the tables that it
// alone has. A file with neither's is taken by its name.
func isTemplate(path string, data []byte) bool {
	d, _ := parseDocument(path, data)
	return d.hasSlots() || len(d.root.fields) == 0 && filepath.Base(path) == "creative-opportunities.toml"
}

// hasSlots reports whether the document is a template file's.
func (d *document) hasSlots() bool {
	return d.root.field("creative_opportunities") != nil || d.root.field("slot") != nil
}

// hasSites reports whether the document is a deckle.toml's.
func (d *document) hasSites() bool {
	return d.root.field("site") != nil || d.root.field("server") != nil
}

// mistaken refuses a whole file that is the other one of the two: advice about
// its keys would only do harm.
func (d *document) mistaken(is, wanted string) {
	d.errorf(0, "", wanted, "this is a %s", is)
}
