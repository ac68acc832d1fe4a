import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { checkoutRoot, isCheckout } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';

/** The version of this program and where it is from. Two builds of a checkout may have one version: the commit tells them apart, where git can. */
export async function describeBuild(): Promise<string> {
  if (!isCheckout) return `${VERSION} of the package in ${checkoutRoot}`;
  const commit = await promisify(execFile)('git', ['-C', checkoutRoot, 'describe', '--always', '--dirty'], {
    timeout: 5_000,
  }).then(
    ({ stdout }) => ` at ${stdout.trim().replace(/-dirty$/, ' with changes')}`,
    () => '',
  );
  return `${VERSION} of the checkout ${checkoutRoot}${commit}`;
}
