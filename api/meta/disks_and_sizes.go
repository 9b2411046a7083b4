package meta

// Reasons of conditions and waits for disks.
const (
	// ReasonDiskGrowing says that a claim is on its way to a larger size.
	ReasonDiskGrowing = "DiskGrowing"
	// ReasonDiskNotGrown says that the storage failed to make a volume larger.
	ReasonDiskNotGrown = "DiskNotGrown"
	// ReasonDiskCannotGrow says that Kubernetes does not let a claim grow.
	ReasonDiskCannotGrow = "DiskCannotGrow"
	// ReasonRecreated says that a workload is deleted and made again while its Pods
	// run.
	ReasonRecreated = "MadeAgain"
)

// Resizes of running Pods.
const (
	// AnnotationResize on a workload records, as JSON, from which templates its Pods
	// come to the newest one by a resize alone.
	AnnotationResize = Prefix + "resize"
	// AnnotationResizeRefused on a Pod is a size that the API server refused it.
	AnnotationResizeRefused = Prefix + "resize-refused"
	// ReasonResizing says that running Pods get other sizes.
	ReasonResizing = "Resizing"
)
