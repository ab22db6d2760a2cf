/** Test hook: tests end the process at these points. */
export type Failpoints<Point> = ((point: Point, subject: string) => Promise<void>) | undefined;
