package meta

// AnnotationLive on a Pod records, as JSON, what was set in its running process:
// the names of the copies whose settings it has got, the container that it was set
// in, and the names of the settings. No value is in it.
const AnnotationLive = Prefix + "live"
