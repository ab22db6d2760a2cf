/** A switch of the page: what it breaks, what to try, and what should hold. */
export interface Lever {
  id: string;
  label: string;
  text: string;
  holds: string;
  isOn(): boolean;
  turn(on: boolean): Promise<void> | void;
}
