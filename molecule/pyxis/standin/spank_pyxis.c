/* Stands in for the real plugin in tests: takes its first option, and says in the job where that arrived. */
#include <stdio.h>
#include <unistd.h>
#include <slurm/spank.h>

SPANK_PLUGIN(pyxis, 1)

static char image[256] = "";

static int take_image(int value, const char *argument, int is_remote)
{
	snprintf(image, sizeof(image), "%s", argument);
	return 0;
}

static struct spank_option option = {"container-image", "IMAGE", "the image of the container", 1, 0, take_image};

int slurm_spank_init(spank_t spank, int count, char **arguments)
{
	return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* Runs in the job, on the node, as the user. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
	char host[256];

	if (image[0] && gethostname(host, sizeof(host)) == 0) {
		for (int number = 0; number < count; number++)
			printf("%s ", arguments[number]);
		printf("image %s on %s\n", image, host);
		fflush(stdout);
	}
	return 0;
}
