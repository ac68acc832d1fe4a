import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { checkoutRoot, isCheckout } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';

/** Returns the version of this program and its origin, with the commit of a checkout if git can tell. */
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
