// SPDX-License-Identifier: BSD-3-Clause
// A rank of gloo's ring all-reduce over its transport "ibverbs": gloo_ring FOLDER RANK RANKS. The ranks
// find each other by files in FOLDER. Each contributes numbers of its own, and compares every sum.

#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr int count = 1 << 18;
constexpr int rounds = 4;

uint64_t number(int rank, int round, int at)
{
	return uint64_t(at) * (rank + 1) + round;
}

// Returns how many sums are wrong. It does not destroy the algorithm: gloo throws if that is destroyed
// before its last notification has completed, for which there is no wait.
template <class Algorithm>
int wrong(const std::shared_ptr<gloo::rendezvous::Context> &context, int rank, int ranks)
{
	auto numbers = new std::vector<uint64_t>(count);
	auto reduce = new Algorithm(context, {numbers->data()}, count);
	int bad = 0;

	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < count; i++)
			(*numbers)[i] = number(rank, round, i);
		reduce->run();
		for (int i = 0; i < count; i++) {
			uint64_t sum = 0;

			for (int other = 0; other < ranks; other++)
				sum += number(other, round, i);
			bad += (*numbers)[i] != sum;
		}
	}
	return bad;
}

// Waits until every rank has its sums: a rank that ends earlier would not receive notifications.
void wait_for_all(gloo::rendezvous::Store &store, int rank, int ranks)
{
	std::vector<std::string> keys;

	store.set("done " + std::to_string(rank), {1});
	for (int other = 0; other < ranks; other++)
		keys.push_back("done " + std::to_string(other));
	store.wait(keys);
}

int run(const char *folder, int rank, int ranks)
{
	gloo::transport::ibverbs::attr attr = {"rocade0", 1, 0};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(folder);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

	context->connectFullMesh(store, device);
	int bad = wrong<gloo::AllreduceRing<uint64_t>>(context, rank, ranks) +
		wrong<gloo::AllreduceRingChunked<uint64_t>>(context, rank, ranks);
	wait_for_all(store, rank, ranks);
	printf("rank %d of %d: %zu bytes, %d sums wrong\n", rank, ranks,
		size_t(2) * rounds * count * sizeof(uint64_t), bad);
	fflush(stdout);
	_Exit(bad != 0); // see wrong()
}

} // namespace

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: gloo_ring FOLDER RANK RANKS\n");
		return 2;
	}
	try {
		return run(argv[1], atoi(argv[2]), atoi(argv[3]));
	} catch (const std::exception &why) {
		fprintf(stderr, "rank %s: %s\n", argv[2], why.what());
		return 1;
	}
}
