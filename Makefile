# Everything that a developer or CI runs. `make test` installs what it needs.

GO       ?= go
FUZZTIME ?= 30s
SHELL    := /bin/bash
NODE_OK  := web/node_modules/.installed

.PHONY: test check slow bench generate tools fmt pbs

# test passes the tests: formatting, vet, layers, Go, TypeScript, a real browser.
test: tools check
	$(GO) test ./...

# check is all that needs no test run.
check: $(NODE_OK)
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt-ed:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) run ./web/build -check
	npm --prefix web run --silent check
	npm --prefix web run --silent test

# tools installs what tests need and Go does not bring: a browser, npm packages.
tools: $(NODE_OK)
	@./.ci/browser

$(NODE_OK): web/package-lock.json
	npm --prefix web ci --ignore-scripts --no-fund --no-audit
	@touch $@

# slow is what is too long for every change: the race detector, fuzzing, soaks.
slow: tools
	@./.ci/peers
	$(GO) test -race -timeout 60m ./...
	DECKLE_SLOW=1 HTMLSTREAM_SOUP=200000 HTMLSTREAM_BROWSER=$$(command -v $${CHROMIUM:-chromium}) $(GO) test -count=1 -timeout 60m ./...
	./.ci/fuzz $(FUZZTIME)

# pbs runs our scenarios against a Prebid Server that somebody has.
pbs:
	@test -n "$$DECKLE_PBS_URL" || { echo "set DECKLE_PBS_URL (and DECKLE_PBS_ACCOUNT, _STORED, _BIDDERS)"; exit 1; }
	$(GO) test -count=1 -run TestRealPrebidServer -v ./internal/prebid

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# generate builds the browser files that are committed; it needs no Node.
generate:
	$(GO) run ./web/build

fmt:
	$(GO) tool gofumpt -w $$(git ls-files '*.go')
