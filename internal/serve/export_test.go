package serve

// Forget is what a server does with a pipeline after each batch.
func Forget(p *Pipeline) { p.forget() }
