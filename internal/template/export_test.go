package template

// SetCacheLimit bounds the states of t to so many bytes.
func SetCacheLimit(t *Template, bytes int) { t.set.limit = bytes }

// CacheBytes is what the states of t take up by the cache's own count.
func CacheBytes(t *Template) int {
	c := t.set.cache.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
