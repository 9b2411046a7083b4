// Package image makes container images without a container engine and without a registry.
//
// A base layer is unpacked from Debian packages that the machine's own apt fetches and verifies; small layers of files
// that the caller names go on top; the result is a docker-archive tarball that a container runtime imports. Equal
// inputs give equal bytes: entries are sorted, owners are numeric and every time stamp is the same.
//
//	apt (private state) ──► .deb files ──► one tar of their files ──► base layer (cached by its inputs)
//	caller's files ─────────────────────────────────────────────────► top layer ──► archive with its tag
package image
