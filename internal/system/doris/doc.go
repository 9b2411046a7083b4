// Package doris serves the DorisCluster kind: Apache Doris with local storage.
//
// # The model
//
// A cluster has frontends (FE: metadata and SQL, one of them the master) and
// backends (BE: data), and it may have compute nodes (CN: backends that keep a
// cache) and brokers. Each component is one StatefulSet with a headless Service
// that names its Pods and, but for brokers, a Service for users. The containers register
// themselves with the FE master when they start; the operator sees to it that
// they start in an order in which this works:
//
//	Services, Secrets ─▶ FE 0 ─▶ FE 0 serves as master ─▶ the other FE ─▶
//	                              │
//	                              └─▶ BE, CN, brokers
//
// # Invariants
//
//   - All others are made only when a frontend serves (or an external one is named).
//   - On a new cluster one FE starts alone until it serves as master, so that two
//     frontends never found two clusters. From then on a marker ConfigMap says
//     that the cluster was bootstrapped, and a guard in the FE Pods refuses to
//     found a second one on lost metadata.
//   - A Pod goes one at a time in the whole cluster, and one that serves only
//     while all others do: frontends last, the last of each first. One
//     that is outdated and does not serve goes before all others.
//   - What somebody else did to a Pod template is not carried out and not fought
//     over: it is held, and the Pods stay. Anything else of ours is restored.
//   - A set never gets fewer members here: taking members away needs the database.
//   - Claims are never deleted.
package doris
