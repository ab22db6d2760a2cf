export type Operation =
  | "start"
  | "stop"
  | "restart"
  | "resize"
  | "restore"
  | "create"
  | "update"
  | "delete";
/** Fixed, or between two bounds. */
export type Span = number | readonly [number, number];

/** How an operation goes on after it was accepted; weather may change it. */
export interface Fate {
  /** Accepted, and then nothing ever happens. */
  stuck?: boolean | undefined;
  /** The state it ends in instead, e.g. ERROR. */
  goesTo?: string | undefined;
  /** The state shown meanwhile; null shows the old one. */
  via?: string | null | undefined;
}
