/** Notes what was opened, so that it is closed with the process: what is opened first is closed last. */
export type Opened = <T extends { close(): Promise<unknown> }>(thing: T) => T;
