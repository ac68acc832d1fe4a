/**
 * A small fault that takes one behaviour of docs/behaviours.md
 * away. The tests that the page names for the row must notice it.
 */
export interface RowFault {
  row: string;
  file: string;
  /** Text to replace, which stands exactly once in the file. */
  text: string;
  change: string;
}
