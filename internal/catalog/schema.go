package catalog

// CreativeSchema is the JSON Schema (2020-12) of a creative.
func CreativeSchema() []byte { return nil }
