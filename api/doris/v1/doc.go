// Package v1 is version v1 of the API group doris.selectdb.com: Apache Doris
// clusters whose storage is local to their backends.
//
// Group, kind, field names and their meaning are those that users of the
// existing Doris operator write, so that manifests keep working. Fields that
// are new are optional and stand beside the old ones.
//
// +kubebuilder:object:generate=true
// +groupName=doris.selectdb.com
package v1
