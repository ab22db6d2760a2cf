/**
 * The report inside of what Azure's paravisor keeps in the vTPM's NV index 0x01400001. A header of
 * 32 bytes that begins with `HCLA` stands before the hardware's report, and the data that this one
 * is bound to stands behind it
 * (https://learn.microsoft.com/azure/confidential-computing/guest-attestation-confidential-virtual-machines-design).
 * Any other evidence is returned as it is.
 */
export function unwrapHclReport(bytes: Buffer): Buffer {
  if (bytes.subarray(0, 4).toString("latin1") !== "HCLA") return bytes;
  return bytes.subarray(headerBytes, headerBytes + reportBytes);
}

const headerBytes = 32;
/** The size of an SNP report, and the room for a report of any hardware. */
const reportBytes = 1184;

/** The type with which a TD report begins: Intel's REPORTMACSTRUCT, for TDX. */
const tdReportType = 0x81;
const tdReportBytes = 1024;

/**
 * Whether these bytes are a TD report, which only the processor that made it can check. A quote has
 * its version in the first bytes, which is never as high.
 */
export const isTdReport = (bytes: Buffer): boolean =>
  bytes.length >= tdReportBytes &&
  bytes[0] === tdReportType &&
  bytes.subarray(1, 16).every((byte, n) => n < 3 || byte === 0);
