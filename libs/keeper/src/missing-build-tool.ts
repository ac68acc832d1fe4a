/** Rejection of a build of the keeper for which this machine lacks a compiler or a library. */
export class MissingBuildTool extends Error {
  override name = 'MissingBuildTool';
}
