// SPDX-License-Identifier: BSD-3-Clause
// The device's paths by std::filesystem: prints a line for each function that finds them.
//   sysfs_walk DEVICE
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

namespace fs = std::filesystem;

static void
row(const std::string &name, bool good)
{
	std::cout << name << (good ? " ok" : " failed") << "\n";
}

static std::string
first_line(const fs::path &path)
{
	std::ifstream file(path);
	std::string line;

	std::getline(file, line);
	return line;
}

int
main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	const fs::path top = "/sys/class/infiniband", device = top / argv[1];
	const fs::path ports = device / "ports/1";
	const fs::path real = fs::canonical(device);
	long gids = std::distance(fs::directory_iterator(ports / "gids"), {});

	row("exists", fs::exists(ports / "state") && !fs::exists(ports / "none"));
	row("ifstream", first_line(ports / "state") == "4: ACTIVE");
	row("directory_iterator", gids == 16);
	row("is_symlink", fs::is_symlink(device) && fs::is_directory(device));
	row("read_symlink", fs::read_symlink(device).string().rfind("../../devices/", 0) == 0);
	row("canonical", real.string().rfind("/sys/devices/", 0) == 0 && fs::exists(real));
	bool found = false;
	for (const auto &entry : fs::recursive_directory_iterator(device))
		found |= entry.path() == ports / "counters/port_rcv_data";
	row("recursive_directory_iterator", found);
	row("status", fs::status(device / "node_guid").type() == fs::file_type::regular);
	fs::current_path(ports);
	row("current_path", fs::current_path() == real / "ports/1");
	row("relative", first_line("state") == "4: ACTIVE" && fs::exists("gids/0"));
	return 0;
}
