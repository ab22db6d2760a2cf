/** Registers something to be closed with the process. What was opened first is closed last. */
export type Opened = <T extends { close(): Promise<unknown> }>(thing: T) => T;
