package api

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"deckle/internal/catalog"
)

//go:embed schemas.json
var schemasJSON []byte

func (a *API) openAPI(c call) error {
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(a.document) // an error says that the client has gone
	return nil
}

type object = map[string]any

// document describes routes in OpenAPI 3.1.
func document(routes []route) []byte {
	paths := map[string]object{}
	for _, r := range routes {
		path := Prefix + r.path
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(r.method)] = describe(r)
	}
	return encode(object{
		"openapi": "3.1.0",
		"info": object{
			"title":   "Deckle management API",
			"version": "1",
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Publishers, sites, advertisers, campaigns, creatives and approvals; reports of what happened.\n\n" +
				"Money is in micros (millionths) of the publisher's currency. " +
				"Every write names the revision that it replaces (If-Match); a lost race is a 409 with what is there by now. " +
				"A POST with an Idempotency-Key is done once: the answer is kept in the memory of one node for 24 hours, in 16 MiB at most; 409, 428, 429 and 5xx are not kept. " +
				"The same request is one with the same method, target, media type, If-Match and body; another one with that key is a 422. " +
				fmt.Sprintf("A key has %d requests a second.", perSecond),
		},
		"servers":  []any{object{"url": "/", "description": "The admin listener"}},
		"security": []any{object{"key": []any{}}},
		"paths":    paths,
		"components": object{
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer", "description": "A key of [admin].api_keys_file; `deckle admin key` makes one."}},
			"schemas":         schemas(),
			"responses": object{"Problem": object{
				"description": "What is wrong, as RFC 9457 has it",
				"content":     object{"application/problem+json": object{"schema": ref("Problem")}},
			}},
		},
	})
}

var variable = regexp.MustCompile(`\{(\w+)\}`)

func describe(r route) object {
	op := r.op
	out := object{"operationId": op.id, "summary": op.summary, "tags": []string{op.tag}, "responses": responses(r)}
	if p := parameters(r); len(p) > 0 {
		out["parameters"] = p
	}
	if op.open {
		out["security"] = []any{}
	}
	if op.limit > 0 {
		content := object{}
		for media := range strings.SplitSeq(op.accept, ", ") {
			content[media] = object{}
			if op.takes != "" {
				content[media] = object{"schema": ref(op.takes)}
			}
		}
		out["requestBody"] = object{"required": true, "content": content, "description": fmt.Sprintf("At most %d KiB.", op.limit>>10)}
	}
	return out
}

func parameters(r route) (list []object) {
	add := func(in, name, doc string, required bool) {
		schema := object{"type": "string"}
		if name == "limit" {
			schema = object{"type": "integer", "minimum": 1, "maximum": maxLimit, "default": defaultLimit}
		}
		list = append(list, object{"in": in, "name": name, "description": doc, "required": required, "schema": schema})
	}
	for _, m := range variable.FindAllStringSubmatch(r.path, -1) {
		doc := "The id of the " + m[1] + "."
		if m[1] == "id" {
			doc = "One of the " + r.op.tag + ", by its id."
		}
		add("path", m[1], doc, true)
	}
	for _, q := range r.op.query {
		add("query", q.name, q.doc, false)
	}
	switch r.op.match {
	case "revision":
		add("header", "If-Match", "The ETag of what is replaced.", true)
	case "diff":
		add("header", "If-Match", "The ETag of the diff that was shown.", true)
	case "revision or new":
		add("header", "If-Match", "The ETag of what is replaced; this or If-None-Match is required.", false)
		add("header", "If-None-Match", "`*`: there is nothing to replace.", false)
	}
	if r.method == http.MethodPost {
		add("header", "Idempotency-Key", "At most 255 bytes; the same request with the same key is done once.", false)
	}
	if slices.Contains(r.op.also, http.StatusNotModified) {
		add("header", "If-None-Match", "The ETag of what is known already.", false)
	}
	return list
}

// responses are those of a route, and those that its demands bring with them.
func responses(r route) object {
	op := r.op
	success := cmp.Or(op.status, http.StatusOK)
	out := object{strconv.Itoa(success): succeeds(op, success)}
	for _, status := range slices.Concat(op.also, statuses(r)) {
		switch {
		case status == http.StatusCreated:
			out["201"] = succeeds(op, status)
		case status == http.StatusNotModified:
			out["304"] = object{"description": http.StatusText(status)}
		default:
			out[strconv.Itoa(status)] = object{"$ref": "#/components/responses/Problem"}
		}
	}
	return out
}

func statuses(r route) []int {
	op := r.op
	var s []int
	if !op.open {
		s = append(s, 400, 401, 403, 429, 500, 503)
	}
	if op.limit > 0 {
		s = append(s, 408, 413, 415)
	}
	if op.match != "" {
		s = append(s, 409, 428)
	}
	if r.method == http.MethodPost {
		s = append(s, 409, 422) // of the Idempotency-Key
	}
	return s
}

func succeeds(op operation, status int) object {
	out := object{"description": http.StatusText(status)}
	headers := object{}
	if strings.HasSuffix(op.gives, "Record") || op.gives == "Approvals" || op.gives == "Keys" || op.gives == "Diff" && op.match == "" {
		headers["ETag"] = object{"schema": object{"type": "string"}, "description": "For If-Match."}
	}
	if status == http.StatusCreated {
		headers["Location"] = object{"schema": object{"type": "string"}}
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	content := object{}
	switch {
	case op.gives == "Description":
		content[jsonMedia] = object{"schema": object{"type": "object"}}
	case op.gives != "":
		content[jsonMedia] = object{"schema": ref(op.gives)}
	case status == http.StatusOK && !op.csv:
		content["image/*"] = object{}
	}
	if op.csv {
		content[csvMedia] = object{"schema": object{"type": "string"}}
	}
	if len(content) > 0 {
		out["content"] = content
	}
	return out
}

func ref(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

// schemas are those of the file, and for every kind of entity its record and list.
func schemas() object {
	out := object{}
	if err := json.Unmarshal(schemasJSON, &out); err != nil {
		panic(fmt.Sprintf("api: schemas.json: %v", err))
	}
	for _, k := range catalog.Kinds() {
		name := strings.ToUpper(string(k)[:1]) + string(k)[1:]
		record := maps.Clone(out["Record"].(object))
		record["properties"] = maps.Clone(record["properties"].(object))
		record["properties"].(object)["value"] = ref(name)
		out[name+"Record"] = record
		out[name+"List"] = listOf(name + "Record")
	}
	delete(out, "Record")
	for _, name := range []string{"Waiting", "Event", "Change"} {
		out[name+"List"] = listOf(name)
	}
	return out
}

func listOf(schema string) object {
	return object{
		"type":                 "object",
		"required":             []string{"items"},
		"additionalProperties": false,
		"properties": object{
			"items": object{"type": "array", "items": ref(schema)},
			"next":  object{"type": "string", "description": "The cursor of the next page, if there is one."},
		},
	}
}
