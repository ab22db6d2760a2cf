/** Names of VMs that a shell would run, split, or match with files if they weren't kept from it. */
export const evilNames = [
  "x$(touch${IFS}made)",
  "`touch made`",
  "x;touch made",
  "../*",
  "--reason=now",
  "a b",
];
