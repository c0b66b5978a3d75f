package catalog

// A world is what an entity is judged against.
type world interface{}

func (e *Publisher) normalize(w world)  {}
func (e *Site) normalize(w world)       {}
func (e *Advertiser) normalize(w world) {}
func (e *Campaign) normalize(w world)   {}
func (e *Creative) normalize(w world)   {}

func (e *Publisher) validate(p *problems, w world)  {}
func (e *Site) validate(p *problems, w world)       {}
func (e *Advertiser) validate(p *problems, w world) {}
func (e *Campaign) validate(p *problems, w world)   {}
func (e *Creative) validate(p *problems, w world)   {}
