/** A name of a VM as long as few are. */
export const longName = (n: number) => `vm-${n}-${"confidential-workload-".repeat(4)}`;

export const longReason =
  "the compute service reports a failure of the host, and says what it was at length. ";
